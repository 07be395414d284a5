// An attention problem with random numbers and the results of the op, stored as float, double or bfloat16.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "core/to_size.h"
#include "ops/reference/attention_reference.h"
#include "tests/support/numeric.h"

namespace qkv::testing {

// The axes along which a mask repeats.
enum Repeats { kSequences = 1, kHeads = 2, kRows = 4, kKeys = 8 };

struct AttentionShape {
  std::vector<int32_t> T, S;  // one entry per sequence
  int64_t heads = 1, key_width = 8, value_width = 8;
  Causal causal = Causal::none;
  bool mask = false;  // random, with some −∞; the first query of the last sequence sees no key
  float dropout = 0;
  int64_t gap = 0;  // elements before the first head and after each
  double size = 1;  // standard deviation of q
  int64_t kv_heads = 0;
  Window window = {};
  double softcap = 0;
  bool alibi = false;
  bool allowed = false;  // random, mostly true
  int64_t blocks = 1;    // blocks of queries and keys; `allowed` hides other blocks from each other
  int repeats = 0;       // axes along which both masks repeat
  bool batched = false;  // [B, H, T, Dh] with no offsets; all T and all S are equal
  int64_t reach = -1;    // of a random distance bias; −1: none
  bool rounded = false;  // numbers that bfloat16 can represent
};

inline int64_t total(const std::vector<int32_t>& lengths) {
  int64_t sum = 0;
  for (int32_t n : lengths) sum += n;
  return sum;
}

// Results are filled with 777 before an op writes them, which reveals writes into gaps.
template <class T>
struct AttentionProblem {
  using Real = Arithmetic<T>;

  explicit AttentionProblem(const AttentionShape& requested) : shape(requested) {
    const int64_t N = total(shape.T), M = total(shape.S), H = shape.heads, K = kv_heads();
    q = values(shape.gap + N * H * row(shape.key_width), 1, shape.size);
    k = values(shape.gap + M * K * row(shape.key_width), 2);
    v = values(shape.gap + M * K * row(shape.value_width), 3);
    dout = values(shape.gap + N * H * row(shape.value_width), 4);
    out.assign(dout.size(), T(777.0f)), lse.assign(to_size(N * H), 777);
    dq.assign(q.size(), T(777.0f)), dk.assign(k.size(), T(777.0f)), dv.assign(v.size(), T(777.0f));
    int32_t a = 0, b = 0;
    for (size_t s = 0; s < shape.T.size(); s++) {
      q_begin.push_back(a), q_end.push_back(a += shape.T[s]);
      k_begin.push_back(b), k_end.push_back(b += shape.S[s]);
      mask_rows = std::max<int64_t>({mask_rows, shape.T[s], shape.S[s]});
    }
    make_masks();
    if (shape.reach >= 0) distances = normal<Real>(H * (2 * shape.reach + 1), 7);
    ddistances.assign(distances.size(), 777);
    for (int64_t h = 0; h < H; h++) slopes.push_back(static_cast<Real>(std::exp2(-1.0 - static_cast<double>(h))));
  }

  // The same numbers in another type.
  template <class U>
  explicit AttentionProblem(const AttentionProblem<U>& p)
      : shape(p.shape),
        q(cast<T>(p.q)),
        k(cast<T>(p.k)),
        v(cast<T>(p.v)),
        out(cast<T>(p.out)),
        dout(cast<T>(p.dout)),
        dq(cast<T>(p.dq)),
        dk(cast<T>(p.dk)),
        dv(cast<T>(p.dv)),
        mask(cast<Real>(p.mask)),
        dmask(cast<Real>(p.dmask)),
        lse(cast<Real>(p.lse)),
        slopes(cast<Real>(p.slopes)),
        distances(cast<Real>(p.distances)),
        ddistances(cast<Real>(p.ddistances)),
        allowed(p.allowed),
        mask_stride(p.mask_stride),
        mask_rows(p.mask_rows),
        q_begin(p.q_begin),
        q_end(p.q_end),
        k_begin(p.k_begin),
        k_end(p.k_end) {}

  AttentionInput<T> input() const {
    AttentionInput<T> in;
    in.q = queries(q.data(), shape.key_width);
    in.k = keys(k.data(), shape.key_width), in.v = keys(v.data(), shape.value_width);
    in.sequences = {static_cast<int64_t>(q_begin.size()), q_begin.data(), q_end.data(), k_begin.data(), k_end.data()};
    if (shape.batched) in.sequences = {in.sequences.count, nullptr, nullptr, nullptr, nullptr, shape.T[0], shape.S[0]};
    in.heads = shape.heads, in.kv_heads = shape.kv_heads;
    in.key_width = shape.key_width, in.value_width = shape.value_width;
    in.scale = static_cast<Real>(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.key_width))));
    in.softcap = static_cast<Real>(shape.softcap);
    in.causal = shape.causal, in.window = shape.window;
    if (shape.mask) in.mask = mask_view(mask.data());
    if (shape.allowed) in.allowed = mask_view(allowed.data());
    if (shape.alibi) in.alibi = slopes.data();
    if (shape.reach >= 0) in.distance_bias = {distances.data(), shape.reach};
    in.dropout = {shape.dropout, 42, 7, 3 << 12};
    return in;
  }
  template <class U>
  Heads<U> queries(U* data, int64_t width) const {
    return heads(data, shape.heads, shape.T[0], width);
  }
  template <class U>
  Heads<U> keys(U* data, int64_t width) const {
    return heads(data, kv_heads(), shape.S[0], width);
  }
  template <class U>
  Heads<U> rows(U* data) const {
    return shape.batched ? Heads<U>{data, 1, shape.T[0], shape.heads * shape.T[0]} : Heads<U>{data, shape.heads, 1};
  }
  AttentionGradients<T> gradients() {
    AttentionGradients<T> to{
        queries(dq.data(), shape.key_width), keys(dk.data(), shape.key_width), keys(dv.data(), shape.value_width), {}};
    if (shape.mask) to.dmask = mask_view(dmask.data());
    if (shape.reach >= 0) to.ddistance_bias = ddistances.data();
    return to;
  }
  reference::BackwardInput<T> backward_input(const AttentionInput<T>& in) const {
    return {in, queries(out.data(), shape.value_width), rows(lse.data()), queries(dout.data(), shape.value_width)};
  }

  void forward() { forward(input()); }
  void forward(const AttentionInput<T>& in) {
    workspace.resize(std::max(workspace.size(), attention_workspace(in)));
    attention<T>(in, queries(out.data(), shape.value_width), rows(lse.data()), workspace);
  }
  void backward() {
    const AttentionInput<T> in = input();
    const auto b = backward_input(in);
    workspace.resize(std::max(workspace.size(), attention_backward_workspace(in)));
    attention_backward<T>(in, b.out, b.lse, b.dout, gradients(), workspace);
  }
  void plain() {  // forward and backward, by the reference
    const AttentionInput<T> in = input();
    reference::attention<T>(in, queries(out.data(), shape.value_width), rows(lse.data()));
    reference::attention_backward<T>(backward_input(in), gradients());
  }
  std::vector<Real> weights(int64_t s, int64_t h) const {
    const Span at = span(input().sequences, s);
    std::vector<Real> A(to_size(at.T * at.S));
    attention_weights<T>(input(), rows(lse.data()), {s, h, 0, at.T}, A.data());
    return A;
  }
  // Returns Σ dout · out, whose gradients are dq, dk and dv; without gaps.
  double loss() {
    forward();
    double sum = 0;
    for (size_t i = 0; i < out.size(); i++) sum += static_cast<double>(out[i]) * static_cast<double>(dout[i]);
    return sum;
  }

  AttentionShape shape;
  std::vector<std::byte> workspace;
  std::vector<T> q, k, v, out, dout, dq, dk, dv;
  std::vector<Real> mask, dmask, lse, slopes, distances, ddistances;
  std::vector<uint8_t> allowed;
  int64_t mask_stride = 0, mask_rows = 0;
  std::vector<int32_t> q_begin, q_end, k_begin, k_end;

 private:
  int64_t kv_heads() const { return shape.kv_heads ? shape.kv_heads : shape.heads; }
  int64_t row(int64_t width) const { return width + shape.gap; }
  template <class U>
  Heads<U> heads(U* data, int64_t H, int64_t tokens, int64_t width) const {
    if (shape.batched) return {data + shape.gap, row(width), tokens * row(width), H * tokens * row(width)};
    return {data + shape.gap, H * row(width), row(width)};
  }
  std::vector<T> values(int64_t n, uint64_t seed, double scale = 1) const {
    std::vector<T> x;
    for (const float value : normal<float>(n, seed, scale))
      x.push_back(static_cast<T>(shape.rounded ? static_cast<float>(bfloat16(value)) : value));
    return x;
  }
  template <class U>
  AttentionMask<U> mask_view(U* data) const {
    const int64_t page = mask_rows * mask_stride;
    const auto unless = [&](Repeats axis, int64_t stride) { return shape.repeats & axis ? 0 : stride; };
    return {data, unless(kSequences, shape.heads * page), unless(kHeads, page), unless(kRows, mask_stride),
            unless(kKeys, 1)};
  }
  void make_masks() {
    mask_stride = mask_rows + 3;
    const int64_t sequences = static_cast<int64_t>(shape.T.size()), page = mask_rows * mask_stride;
    if (shape.mask) {
      mask = normal<Real>(sequences * shape.heads * page, 5);
      for (size_t i = 3; i < mask.size(); i += 7) mask[i] = -std::numeric_limits<Real>::infinity();
      for (int64_t h = 0; h < shape.heads && !shape.repeats; h++)
        std::fill_n(&mask[to_size(((sequences - 1) * shape.heads + h) * page)], mask_stride,
                    -std::numeric_limits<Real>::infinity());
      dmask.assign(mask.size(), 0);
    }
    if (shape.allowed)
      for (const float x : normal<float>(sequences * shape.heads * page, 6)) {
        const int64_t place = std::ssize(allowed) % page, i = place / mask_stride, j = place % mask_stride;
        allowed.push_back(x > -1 && i * shape.blocks / shape.T[0] == j * shape.blocks / shape.S[0]);
      }
  }
};

}  // namespace qkv::testing
