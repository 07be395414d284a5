// The driver of top_k_logits and next_tokens: computes the logits X Wᵀ + b block by block, reads each block while it is
// in the cache, and keeps the k best tokens of each row. Every thread keeps candidates of its own, which are merged at
// the end, so the result does not depend on which thread read a block.
#pragma once

#include <span>

#include "core/function_ref.h"
#include "core/system/threads.h"
#include "ops/best_tokens.h"
#include "ops/row_linear.h"

namespace qkv {

// Best is BestTokens or TokenHeap.
template <class Best>
struct LogitReader {
  int64_t k = 0;  // tokens to keep per row
  // Reads one block; best points to the candidates of its rows.
  FunctionRef<void(const Block&, Matrix<float> logits, Best* best)> read;
  // Called once for each row n with the best of all blocks.
  FunctionRef<void(int64_t n, const Best&)> finish;
};

// W is a Matrix<const float> or an Int8Matrix; shapes as in row_linear.
template <class Best, class Weights>
void read_logit_blocks(Matrix<const float> X, const Weights& W, const float* b, const LogitReader<Best>& reader,
                       Arena& scratch) {
  const Arena::Scope scope(scratch);
  const int64_t N = X.rows, k = reader.k, workers = threads();
  Best* best = scratch.take<Best>(workers * N);  // one per thread and row
  ScoredToken* tokens = scratch.take<ScoredToken>(workers * N * k);
  for (int64_t i = 0; i < workers * N; i++) best[i] = {tokens + i * k, 0, k};
  float* logits = scratch.take<float>(workers * kSinkRows * kSinkColumns);  // one block of each thread

  const auto place = [&](const Block& at) {
    return Matrix<float>(logits + thread_number() * kSinkRows * kSinkColumns, at.row_end - at.row_begin,
                         at.col_end - at.col_begin, kSinkColumns);
  };
  const auto after = [&](const Block& at, Matrix<float> block) {
    reader.read(at, block, best + thread_number() * N + at.row_begin);
  };
  row_linear_blocks(X, W, b, {place, after}, scratch);

  parallel_for(N, [&](int64_t n) {
    for (int64_t t = 1; t < workers; t++)
      for (int64_t i = 0; i < best[t * N + n].size; i++) best[n].add(best[t * N + n].tokens[i]);
    reader.finish(n, best[n]);
  });
}

}  // namespace qkv
