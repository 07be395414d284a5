// Linear layers with narrow rows or few weights, by our own register tiles (ops/cpu/linear/product-inl.h). They are
// faster than oneDNN for these shapes: the weights are packed once for all rows, and dW needs no transpose. The
// division into blocks depends only on the shape.
#pragma once

#include "ops/linear.h"

namespace qkv {

inline bool few_weights(Matrix<const float> W) { return W.rows * W.cols <= 1 << 16; }
inline bool suits_tiles(Matrix<const float> W) { return W.cols <= 256 || few_weights(W); }

// The same contracts as linear and linear_backward in ops/linear.h.
void tile_linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y, Arena& scratch,
                 const Epilogue<float>& epilogue);
void tile_linear_backward(Matrix<const float> X, Matrix<const float> W, Matrix<const float> dY,
                          const LinearGradients<float>& gradients, Arena& scratch);

// sums[c] += Σ_n x(n, c)
void add_column_sums(Matrix<const float> x, float* sums);

}  // namespace qkv
