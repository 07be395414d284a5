// The best next tokens of rows of logits, by a simple kernel, not optimized: a warp has a row, which it reads once for
// each token. ops/next_tokens.h.
#include <limits>

#include "arguments.h"
#include "grid.h"
#include "softmax.h"
#include "table.h"
#include "warp.h"

namespace qkv::cuda {

// Columns in increasing order.
struct Columns {
  const int32_t* values;
  int64_t count;

  __device__ bool has(int64_t v) const {
    int64_t begin = 0, end = count;
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      if (values[middle] < v)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin < count && values[begin] == v;
  }
};

// A column and its logit; −1: none.
struct Token {
  float logit;
  int32_t v;

  // Whether it comes before another one: larger logits first, of equal ones the first column.
  __device__ bool before(const Token& other) const {
    if (v < 0 || other.v < 0) return v >= 0;
    return logit != other.logit ? logit > other.logit : v < other.v;
  }
};

// Returns the first token of all lanes.
__device__ inline Token first_of_warp(Token token) {
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    const Token other{__shfl_xor_sync(kAllLanes, token.logit, lanes), __shfl_xor_sync(kAllLanes, token.v, lanes)};
    if (other.before(token)) token = other;
  }
  return token;
}

namespace kernel {

__global__ void next_tokens(Matrix<const float> logits, Columns hidden, qkv_next_tokens next) {
  const int64_t n = warp_number(), V = logits.cols;
  if (n >= logits.rows) return;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const float lse = log_sum_exp(V, [&](int64_t v) { return logits(n, v); });
  const float seen = log_sum_exp(V, [&](int64_t v) { return hidden.has(v) ? kNone : logits(n, v); });
  if (lane_number() == 0) next.lse[n] = lse, next.lse_seen[n] = seen;
  for (int64_t i = lane_number(); i < hidden.count; i += kLanes)
    next.hidden[n * hidden.count + i] = logits(n, hidden.values[i]);

  Token last{0, -1};  // the token before, of all that are left
  for (int64_t i = 0; i < next.k; i++) {
    Token best{kNone, -1};
    for (int64_t v = lane_number(); v < V; v += kLanes) {
      const Token token{logits(n, v), static_cast<int32_t>(v)};
      const bool is_left = i == 0 || (last.v >= 0 && last.before(token));
      if (is_left && token.before(best) && !hidden.has(v)) best = token;
    }
    last = first_of_warp(best);
    if (lane_number() == 0) next.logits[n * next.k + i] = last.logit, next.tokens[n * next.k + i] = last.v;
  }
}

}  // namespace kernel

namespace {

void next_tokens(qkv_matrix logits, const int32_t* hidden, int64_t hidden_count, const qkv_next_tokens* next) {
  launch_warps(logits.rows, kernel::next_tokens, matrix<const float>(logits), Columns{hidden, hidden_count}, *next);
}

}  // namespace

void add_next_tokens(qkv_device& t) { t.next_tokens = entry<next_tokens>; }

}  // namespace qkv::cuda
