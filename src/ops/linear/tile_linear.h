// Linear layers of narrow rows, or of few weights, by tiles of our own (ops/linear/product-inl.h), which are faster
// there than oneDNN: the weights are packed once for all rows, and dW needs no transpose. The cut depends on the shape
// alone.
#pragma once

#include "ops/linear/linear.h"

namespace qkv {

inline bool few_weights(Matrix<const float> W) { return W.rows * W.cols <= 1 << 16; }
inline bool suits_tiles(Matrix<const float> W) { return W.cols <= 256 || few_weights(W); }

// ops/linear/linear.h
void tile_linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y, Arena& scratch,
                 AfterBlock after);
void tile_linear_backward(Matrix<const float> X, Matrix<const float> W, Matrix<const float> dY,
                          const LinearGradients<float>& gradients, Arena& scratch);

// sums[c] += Σ_n x(n, c)
void add_column_sums(Matrix<const float> x, float* sums);

}  // namespace qkv
