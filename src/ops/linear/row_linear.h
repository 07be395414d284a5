// Linear layers for inference: Y = X Wᵀ + b where a row of Y is computed from its row of X alone, always in the same
// order, so that a sentence has the same bits in any batch. Weights are used as they lie in a file, float32 or int8.
#pragma once

#include "core/arena.h"
#include "ops/linear/linear.h"

namespace qkv {

// A matrix of weights in 8 bits: W(o, i) = scale[o] · values(o, i). Every row has its own scale.
struct Int8Matrix {
  Matrix<const int8_t> values;    // [out, in]
  const float* scale = nullptr;   // [out]
  const int32_t* sums = nullptr;  // [out]: Σ_i values(o, i)
};

// W(o, i) ≈ scale[o] · values[o, i] with scale[o] = max_i |W(o, i)| / 127.
void quantize_rows(Matrix<const float> W, int8_t* values, float* scale);

// X: [N, in], W: [out, in], b: [out] or null, Y: [N, out]; Y is assigned and overlaps none of the others. Sums run over
// i in order, beginning with b.
template <class Real>
void row_linear(Matrix<const Real> X, Matrix<const Real> W, const Real* b, Matrix<Real> Y, Arena& scratch,
                AfterBlock after = {});

// The same with weights in 8 bits, and X in 8 bits too: x_i ≈ s · (u_i − 128) with s = max_i |x_i| / 127 for each row.
// The sums of products of integers are exact. `in` is a multiple of 4.
constexpr float kLeastScaled = 1e-30f;  // a row of X without a larger number counts as zero
void row_linear(Matrix<const float> X, const Int8Matrix& W, const float* b, Matrix<float> Y, Arena& scratch,
                AfterBlock after = {});

// Where the blocks of Y go when Y is not wanted whole: place(block) gives a matrix of the block's size for its values,
// after(block, values) is called when they are there, on the thread that made them. Blocks begin at columns that are
// multiples of kSinkColumns, have as many columns or end with Y, and at most kSinkRows rows.
struct BlockSink {
  FunctionRef<Matrix<float>(const Block&)> place;
  FunctionRef<void(const Block&, Matrix<float>)> after;
};
constexpr int64_t kSinkColumns = 128, kSinkRows = 192;

void row_linear_blocks(Matrix<const float> X, Matrix<const float> W, const float* b, BlockSink sink, Arena& scratch);
void row_linear_blocks(Matrix<const float> X, const Int8Matrix& W, const float* b, BlockSink sink, Arena& scratch);

}  // namespace qkv
