// Division of a backward pass among threads. With enough heads, a task processes one key/value head and assigns all its
// gradients. With few heads, some tasks assign dK and dV of some keys and others dQ of some queries; the weights are
// then computed twice. Sums run in the same order in both cases, so the result has the same bits.
#include <atomic>

#include "core/to_size.h"
#include "ops/cpu/attention/attention_check.h"
#include "ops/cpu/attention/attention_workspace.h"
#include "ops/reference/attention_reference.h"

namespace qkv {
namespace {

constexpr int64_t kTaskRows = 4 * kBlockRows;

struct Plan {
  Longest longest;
  int64_t pairs, group;  // sequences × key/value heads; query heads per key/value head
  bool split;
  DistanceSums distances;    // of all sequences, without the data
  size_t scratch_bytes = 0;  // per thread

  explicit Plan(const AttentionOptions<float>& in)
      : longest(in.sequences),
        pairs(in.sequences.count * in.key_value_heads()),
        group(in.heads / in.key_value_heads()) {
    const int64_t workers = in_parallel() ? 1 : threads(), rounds = (pairs + workers - 1) / workers;
    split = longest.queries > kBlockRows &&
            5 * rounds * workers > 7 * pairs;  // compares the numbers of products: 7 if split, 5 if not
    if (in.distance_bias.data) {
      const int64_t farthest = std::max(longest.queries, longest.keys) - 1;
      distances.reach = std::clamp<int64_t>(farthest, 0, in.distance_bias.reach);
      distances.groups = (longest.keys + kKeyTask - 1) / kKeyTask;
    }
    Workspace w;
    scratch(in, w);
    scratch_bytes = w.bytes();
  }
  // The partial sums of a pair.
  int64_t distance_sums() const { return group * distances.groups * distances.width(); }
  BackwardScratch scratch(const AttentionOptions<float>& in, Workspace& w) const {
    return {in, group * longest.queries, split ? std::min(kTaskRows, longest.queries) : group * longest.queries, w};
  }
  size_t bytes() const {
    Workspace shared;
    shared.take<uint8_t>(pairs);
    shared.take<float>(pairs * distance_sums());
    return to_size(threads()) * scratch_bytes + shared.bytes();
  }
};

// One backward pass.
template <class T>
class BackwardPass {
 public:
  BackwardPass(const BackwardCall<T>& call, const Plan& plan, std::span<std::byte> workspace)
      : call_(call), plan_(plan), base_(workspace.data()), kernels_(backward_kernels().of<T>()) {
    if (workspace.size() < plan.bytes())
      fail("attention_backward: workspace must have at least {} bytes (has {})", plan.bytes(), workspace.size());
    Workspace w(workspace.subspan(to_size(threads()) * plan.scratch_bytes));
    not_finite_ = w.take<uint8_t>(plan.pairs);
    std::fill_n(not_finite_, plan.pairs, uint8_t{0});
    distance_sums_ = w.take<float>(plan.pairs * plan.distance_sums());
  }

  void compute() const {
    plan_.split ? assign_split() : assign_whole();
    parallel_for(plan_.pairs, [&](int64_t pair) {  // so that NaN and infinity reach only the rows they belong to
      const reference::BackwardInput<T> b{call_.in, call_.out, call_.lse, call_.dout};
      if (not_finite_[pair]) reference::pair_gradients(b, pair / K(), pair % K(), call_.gradients);
    });
    if (call_.gradients.dmask.data) add_mask_gradient();
    if (wants_distances()) sum_distances();
  }

 private:
  const AttentionOptions<float>& in() const { return call_.in; }
  int64_t K() const { return in().key_value_heads(); }
  BackwardScratch scratch() const {  // the scratch of this thread
    Workspace w({base_ + to_size(thread_number()) * plan_.scratch_bytes, plan_.scratch_bytes});
    return plan_.scratch(in(), w);
  }
  bool wants_distances() const { return in().distance_bias.data && call_.gradients.ddistance_bias; }
  DistanceSums distances_of(int64_t pair) const {
    DistanceSums sums = plan_.distances;
    if (wants_distances()) sums.data = distance_sums_ + pair * plan_.distance_sums();
    return sums;
  }
  // The part that covers one sequence and key/value head.
  BackwardPart whole(int64_t pair) const {
    const Span at = span(in().sequences, pair / K());
    const int64_t head = pair % K() * plan_.group;
    return {pair / K(), {head, head + plan_.group}, {0, at.T}, {0, at.S}, true, true, distances_of(pair)};
  }
  void assign(int64_t pair, const BackwardPart& part) const {
    if (!kernels_.part(call_, part, scratch())) std::atomic_ref(not_finite_[pair]).store(1, std::memory_order_relaxed);
  }

  void assign_whole() const {
    parallel_blocks(plan_.pairs, pairs_of_a_task(plan_.pairs), [&](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; pair++) assign(pair, whole(pair));
    });
  }

  void assign_split() const {
    const int64_t key_parts = (plan_.longest.keys + kKeyTask - 1) / kKeyTask;
    const int64_t row_parts = (plan_.longest.queries + kTaskRows - 1) / kTaskRows;
    const int64_t parts = key_parts + plan_.group * row_parts;
    parallel_for(plan_.pairs * parts, [&](int64_t task) {
      const int64_t pair = task / parts, index = task % parts;
      BackwardPart part = whole(pair);
      if (index < key_parts) {
        part.queries = false;
        part.keys = intersection(part.keys, {index * kKeyTask, (index + 1) * kKeyTask});
        if (!part.keys.empty()) assign(pair, part);
      } else {
        const int64_t head = part.heads.begin + (index - key_parts) / row_parts;
        const int64_t first = (row_parts - 1 - (index - key_parts) % row_parts) * kTaskRows;
        part.keys_values = false;
        part.distances.data = nullptr;
        part.heads = {head, head + 1};
        part.rows = intersection(part.rows, {first, first + kTaskRows});
        if (!part.rows.empty()) assign(pair, part);
      }
    });
  }

  // A task owns entries of the gradient and adds their contributions in order. If a stride is 0, these come from all
  // sequences, heads or queries that share the entry.
  void add_mask_gradient() const {
    const AttentionMask<float>& to = call_.gradients.dmask;
    clear(to, in());
    const int64_t sequences = in().sequences.count, heads = in().heads;
    const int64_t row_parts = to.row_stride ? (plan_.longest.queries + kBlockRows - 1) / kBlockRows : 1;
    const int64_t s_owners = to.sequence_stride ? sequences : 1, h_owners = to.head_stride ? heads : 1;
    parallel_for(s_owners * h_owners * row_parts, [&](int64_t task) {
      const int64_t part = task % row_parts, h = task / row_parts % h_owners, s = task / row_parts / h_owners;
      const TokenRange all_s = to.sequence_stride ? TokenRange{s, s + 1} : TokenRange{0, sequences};
      const TokenRange all_h = to.head_stride ? TokenRange{h, h + 1} : TokenRange{0, heads};
      for (int64_t own_s = all_s.begin; own_s < all_s.end; own_s++)
        for (int64_t own_h = all_h.begin; own_h < all_h.end; own_h++) {
          const Span at = span(in().sequences, own_s);
          TokenRange rows{0, at.T};
          if (to.row_stride) rows = intersection(rows, {part * kBlockRows, (part + 1) * kBlockRows});
          if (!rows.empty()) kernels_.mask(call_, {own_s, {own_h, own_h + 1}, rows, {0, at.S}}, scratch());
        }
    });
  }

  // Adds the partial sums of each head, in the order of sequences and keys.
  void sum_distances() const {
    const int64_t reach = in().distance_bias.reach, width = in().distance_bias.width();
    parallel_for(in().heads, [&](int64_t h) {
      float* to = call_.gradients.ddistance_bias + h * width;
      std::fill_n(to, width, 0.0f);
      for (int64_t s = 0; s < in().sequences.count; s++) {
        const DistanceSums sums = distances_of(s * K() + h / plan_.group);
        for (int64_t key = 0; key < span(in().sequences, s).S; key += kKeyTask) {
          const float* from = sums.row(h % plan_.group, key);
          for (int64_t e = 0; e < sums.width(); e++) to[reach - sums.reach + e] += from[e];
        }
      }
    });
  }

  const BackwardCall<T>& call_;
  const Plan& plan_;
  std::byte* base_;
  BackwardKernels<T> kernels_;
  uint8_t* not_finite_;
  float* distance_sums_;
};

template <class T>
void backward(const BackwardCall<T>& call, std::span<std::byte> workspace) {
  check_backward(call.in, call.out, call.lse, call.dout, call.gradients);
  const Plan plan(call.in);
  BackwardPass<T>(call, plan, workspace).compute();
}

}  // namespace

template <>
size_t attention_backward_workspace<float>(const AttentionInput<float>& in) {
  check_attention<float>(in);
  return Plan(in).bytes();
}
template <>
size_t attention_backward_workspace<bfloat16>(const AttentionInput<bfloat16>& in) {
  check_attention<float>(in);
  return Plan(in).bytes();
}
template <>
void attention_backward<float>(const AttentionInput<float>& in, Heads<const float> out, Heads<const float> lse,
                               Heads<const float> dout, const AttentionGradients<float>& gradients,
                               std::span<std::byte> workspace) {
  backward<float>({in, out, lse, dout, gradients}, workspace);
}
template <>
void attention_backward<bfloat16>(const AttentionInput<bfloat16>& in, Heads<const bfloat16> out, Heads<const float> lse,
                                  Heads<const bfloat16> dout, const AttentionGradients<bfloat16>& gradients,
                                  std::span<std::byte> workspace) {
  backward<bfloat16>({in, out, lse, dout, gradients}, workspace);
}

}  // namespace qkv
