// An attention problem of random numbers, with what the op gives for it, in float or double.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "core/arena.h"
#include "ops/attention_reference.h"
#include "tests/support/numeric.h"

namespace qkv::testing {

struct AttentionShape {
  std::vector<int32_t> T, S;  // of each sequence
  int64_t heads = 1, key_width = 8, value_width = 8;
  Causal causal = Causal::none;
  bool mask = false;  // random, with some −∞; the first query of the last sequence sees nothing
  float dropout = 0;
  int64_t gap = 0;  // elements before the first head and after each
  double size = 1;  // standard deviation of q
};

inline int64_t total(const std::vector<int32_t>& lengths) {
  int64_t sum = 0;
  for (int32_t n : lengths) sum += n;
  return sum;
}

// Results are full of 777 before an op writes them, so that a write into a gap shows.
template <class Real>
struct AttentionProblem {
  explicit AttentionProblem(const AttentionShape& wanted) : shape(wanted), arena(size_t{64} << 20) {
    const int64_t N = total(shape.T), M = total(shape.S), H = shape.heads;
    const int64_t key_row = H * (shape.key_width + shape.gap), value_row = H * (shape.value_width + shape.gap);
    q = normal<Real>(shape.gap + N * key_row, 1, shape.size), k = normal<Real>(shape.gap + M * key_row, 2);
    v = normal<Real>(shape.gap + M * value_row, 3), dout = normal<Real>(shape.gap + N * value_row, 4);
    out.assign(dout.size(), 777), lse.assign(static_cast<size_t>(N * H), 777);
    dq.assign(q.size(), 777), dk.assign(k.size(), 777), dv.assign(v.size(), 777);
    int32_t a = 0, b = 0;
    for (size_t s = 0; s < shape.T.size(); s++) {
      q_begin.push_back(a), q_end.push_back(a += shape.T[s]);
      k_begin.push_back(b), k_end.push_back(b += shape.S[s]);
      mask_rows = std::max<int64_t>({mask_rows, shape.T[s], shape.S[s]});
    }
    mask_stride = mask_rows + 3;
    if (shape.mask) {
      const int64_t sequences = static_cast<int64_t>(shape.T.size()), page = mask_rows * mask_stride;
      mask = normal<Real>(sequences * H * page, 5);
      for (size_t i = 0; i < mask.size(); i += 7) mask[i] = -std::numeric_limits<Real>::infinity();
      for (int64_t h = 0; h < H; h++)
        std::fill_n(&mask[static_cast<size_t>(((sequences - 1) * H + h) * page)], mask_stride,
                    -std::numeric_limits<Real>::infinity());
    }
  }

  AttentionInput<Real> input() const {
    AttentionInput<Real> in;
    in.q = key_heads(q.data()), in.k = key_heads(k.data()), in.v = value_heads(v.data());
    in.sequences = {static_cast<int64_t>(q_begin.size()), q_begin.data(), q_end.data(), k_begin.data(), k_end.data()};
    in.heads = shape.heads, in.key_width = shape.key_width, in.value_width = shape.value_width;
    in.scale = static_cast<Real>(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.key_width))));
    in.causal = shape.causal;
    const int64_t page = mask_rows * mask_stride;
    if (shape.mask) in.mask = {mask.data(), shape.heads * page, page, mask_stride};
    in.dropout = {shape.dropout, 42, 7, 3 << 12};
    return in;
  }
  template <class T>
  Heads<T> key_heads(T* data) const {
    return {data + shape.gap, shape.heads * (shape.key_width + shape.gap), shape.key_width + shape.gap};
  }
  template <class T>
  Heads<T> value_heads(T* data) const {
    return {data + shape.gap, shape.heads * (shape.value_width + shape.gap), shape.value_width + shape.gap};
  }

  void forward() { attention<Real>(input(), value_heads(out.data()), lse.data(), arena); }
  void backward() {
    attention_backward<Real>(input(), value_heads(std::as_const(out).data()), lse.data(),
                             value_heads(std::as_const(dout).data()), key_heads(dq.data()), key_heads(dk.data()),
                             value_heads(dv.data()), arena);
  }
  void plain() {  // both, by the reference
    reference::attention<Real>(input(), value_heads(out.data()), lse.data());
    reference::attention_backward<Real>(input(), value_heads(std::as_const(out).data()), lse.data(),
                                        value_heads(std::as_const(dout).data()), key_heads(dq.data()),
                                        key_heads(dk.data()), value_heads(dv.data()));
  }
  std::vector<Real> weights(int64_t s, int64_t h) const {
    const reference::Span at = reference::span(input().sequences, s);
    std::vector<Real> A(static_cast<size_t>(at.T * at.S));
    attention_weights<Real>(input(), lse.data(), s, h, Matrix<Real>(A.data(), at.T, at.S));
    return A;
  }
  // Σ dout · out, whose gradients are dq, dk, dv; without gaps.
  double loss() {
    forward();
    double sum = 0;
    for (size_t i = 0; i < out.size(); i++) sum += static_cast<double>(out[i]) * dout[i];
    return sum;
  }

  AttentionShape shape;
  Arena arena;
  std::vector<Real> q, k, v, mask, out, lse, dout, dq, dk, dv;
  int64_t mask_stride = 0, mask_rows = 0;
  std::vector<int32_t> q_begin, q_end, k_begin, k_end;
};

}  // namespace qkv::testing
