// Linear layers for inference with 4-bit weights: Y = X Wᵀ + b. A row of Y depends only on its row of X.
#pragma once

#include "core/arena.h"
#include "core/quantized_matrix.h"
#include "ops/linear.h"
#include "qkv/matrix.h"

namespace qkv {

// Quantizes rows of W to int4, with a scale for each 32 numbers of a row. The scale is one of 21 candidates, which
// leaves the least squared error. W: [16 n, 64 m]; blocks: as in Int4Matrix, assigned.
void quantize_int4(Matrix<const float> W, std::byte* blocks);

constexpr int64_t kFewInt4Rows = 4;  // the speed of memory limits products with up to this many rows

// Y = X Wᵀ + b. X: [N, in]; W: [out, in]; b: [out] or null; Y: [N, out]. Y is assigned and must not overlap another
// matrix. Each group of 32 numbers of a row of X is quantized to 8 bits, x_i ≈ s · u_i with s = max_i |x_i| / 127. Sums
// of a group are exact; those of the groups are added in order, starting from b.
void row_linear(Matrix<const float> X, const Int4Matrix& W, const float* b, Matrix<float> Y, Arena& scratch,
                const Epilogue<float>& epilogue = {});

}  // namespace qkv
