// Linear layers for inference: Y = X Wᵀ + b. A row of Y depends only on its row of X, and its sums always run in the
// same order, so a sentence has the same bits in any batch. Weights are used in place as a file stores them, in float32
// or int8.
#pragma once

#include "core/arena.h"
#include "core/function_ref.h"
#include "core/quantized_matrix.h"
#include "ops/linear.h"

namespace qkv {

// Quantizes W to int8 with one scale per row: W(o, i) ≈ scale[o] · values(o, i), scale[o] = max_i |W(o, i)| / 127.
// Assigns values: [out, in] and scale: [out].
void quantize_rows(Matrix<const float> W, int8_t* values, float* scale);

// Assigns sums[o] = Σ_i W(o, i), on all threads.
void sum_rows(Matrix<const int8_t> W, int32_t* sums);

// Y = X Wᵀ + b. X: [N, in]; W: [out, in]; b: [out] or null; Y: [N, out]. Y is assigned and must not overlap another
// matrix. Sums run over i in order, starting from b.
template <class Real>
void row_linear(Matrix<const Real> X, Matrix<const Real> W, const Real* b, Matrix<Real> Y, Arena& scratch,
                const Epilogue<Real>& epilogue = {});

// The same with int8 weights. X is quantized to 8 bits as well, x_i ≈ s · (u_i − 128) with s = max_i |x_i| / 127 for
// each row. Sums of integer products are exact. `in` must be a multiple of 4.
constexpr float kLeastScaled = 1e-30f;  // a row of X whose largest magnitude is not above this counts as zero
void row_linear(Matrix<const float> X, const Int8Matrix& W, const float* b, Matrix<float> Y, Arena& scratch,
                const Epilogue<float>& epilogue = {});

// y_n = x_n · w_n for each row, with the bits that row_linear gives Y(n, n). X, W: [N, in]; y: [N].
void row_products(Matrix<const float> X, Matrix<const float> W, float* y, Arena& scratch);

// Receives Y block by block, for callers that do not need all of Y in memory. place(block) returns a matrix of the
// block's size for its values; after(block, values) is called when they are complete, on the thread that computed them.
// Blocks begin at columns that are multiples of kSinkColumns and are that wide unless Y ends earlier; they have at most
// kSinkRows rows.
struct BlockSink {
  FunctionRef<Matrix<float>(const Block&)> place;
  FunctionRef<void(const Block&, Matrix<float>)> after;
};
constexpr int64_t kSinkColumns = 128, kSinkRows = 192;

void row_linear_blocks(Matrix<const float> X, Matrix<const float> W, const float* b, BlockSink sink, Arena& scratch);
void row_linear_blocks(Matrix<const float> X, const Int8Matrix& W, const float* b, BlockSink sink, Arena& scratch);

}  // namespace qkv
