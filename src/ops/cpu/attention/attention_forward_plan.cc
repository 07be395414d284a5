// Division of a forward pass among threads. With many heads, a task packs the keys of a head and processes all queries
// that read them. With few heads, the keys of all heads are packed first, and a task then processes one block of
// queries.
#include "core/system/isa.h"
#include "core/to_size.h"
#include "ops/cpu/attention/attention_check.h"
#include "ops/cpu/attention/attention_workspace.h"

namespace qkv {
namespace {

constexpr size_t kPackedBytes =
    size_t{32} << 20;               // limit for all heads that are packed at the same time, unless it is a single one
constexpr int64_t kTaskKeys = 512;  // keys that one task packs

struct Plan {
  Longest longest;
  int64_t pairs, group;  // sequences × key/value heads; query heads per key/value head
  bool split;
  size_t keys_bytes = 0, scratch_bytes = 0;  // per pair, per thread
  int64_t slots;                             // pairs that are packed at the same time

  explicit Plan(const AttentionOptions<float>& in)
      : longest(in.sequences),
        pairs(in.sequences.count * in.key_value_heads()),
        group(in.heads / in.key_value_heads()),
        split(pairs < 8 * threads() && longest.queries > kBlockRows) {
    Workspace keys, scratch;
    PackedKeys(in, longest, keys);
    ForwardScratch(in, longest, scratch);
    keys_bytes = keys.bytes(), scratch_bytes = scratch.bytes();
    const auto fit = static_cast<int64_t>(kPackedBytes / keys_bytes);
    slots = split ? std::clamp<int64_t>(fit, 1, std::max<int64_t>(pairs, 1)) : threads();
  }
  size_t bytes() const { return to_size(slots) * keys_bytes + to_size(threads()) * scratch_bytes; }
};

// The arrays of a plan, placed in the caller's workspace.
struct Rooms {
  const AttentionOptions<float>& in;
  const Plan& plan;
  std::byte* base;

  Rooms(const AttentionOptions<float>& options, const Plan& p, std::span<std::byte> workspace)
      : in(options), plan(p), base(workspace.data()) {
    if (workspace.size() < plan.bytes())
      fail("attention: workspace must have at least {} bytes (has {})", plan.bytes(), workspace.size());
  }
  PackedKeys keys(int64_t slot) const {
    Workspace w({base + to_size(slot) * plan.keys_bytes, plan.keys_bytes});
    return PackedKeys(in, plan.longest, w);
  }
  ForwardScratch scratch() const {  // the scratch of this thread
    const size_t before = to_size(plan.slots) * plan.keys_bytes;
    Workspace w({base + before + to_size(thread_number()) * plan.scratch_bytes, plan.scratch_bytes});
    return ForwardScratch(in, plan.longest, w);
  }
};

// Processes all pairs, each in one task.
template <class T>
void attend_whole(const ForwardCall<T>& call, const Plan& plan, const Rooms& rooms, const ForwardKernels<T>& kernels) {
  parallel_blocks(plan.pairs, pairs_of_a_task(plan.pairs), [&](int64_t begin, int64_t end) {
    kernels.pairs(call, {begin, end}, rooms.keys(thread_number()), rooms.scratch());
  });
}

// Processes pairs [first, first + count), with the queries of each divided among tasks.
template <class T>
void attend_split(const ForwardCall<T>& call, int64_t first, int64_t count, const Plan& plan, const Rooms& rooms,
                  const ForwardKernels<T>& kernels) {
  const int64_t K = call.in.key_value_heads();
  const int64_t parts = (plan.longest.keys + kTaskKeys - 1) / kTaskKeys;
  parallel_for(count * parts, [&](int64_t task) {
    const int64_t slot = task / parts, pair = first + slot, begin = task % parts * kTaskKeys;
    const Span at = span(call.in.sequences, pair / K);
    const int64_t end = std::min(begin + kTaskKeys, at.S);
    if (at.T > kFewQueries && begin < end)
      kernels.pack(call, pair / K, pair % K * plan.group, {begin, end}, rooms.keys(slot));
  });
  const int64_t blocks = (plan.longest.queries + kBlockRows - 1) / kBlockRows;
  parallel_for(count * plan.group * blocks, [&](int64_t task) {
    const int64_t head = task / blocks, slot = head / plan.group, pair = first + slot;
    const Span at = span(call.in.sequences, pair / K);
    const int64_t begin = (blocks - 1 - task % blocks) * kBlockRows;  // longest blocks first if causal
    const int64_t end = std::min(begin + kBlockRows, at.T);
    if (begin < end)
      kernels.rows(call, pair / K, pair % K * plan.group + head % plan.group, {begin, end},
                   at.T > kFewQueries ? rooms.keys(slot) : PackedKeys(), rooms.scratch());
  });
}

template <class T>
void forward(const AttentionInput<T>& in, Heads<T> out, Heads<float> lse, std::span<std::byte> workspace) {
  check_forward(in, out, lse);
  const Plan plan(in);
  const Rooms rooms(in, plan, workspace);
  const ForwardCall<T> call{in, out, lse};
  const ForwardKernels<T> kernels = forward_kernels().of<T>();
  if (!plan.split) return attend_whole(call, plan, rooms, kernels);
  for (int64_t first = 0; first < plan.pairs; first += plan.slots)
    attend_split(call, first, std::min(plan.slots, plan.pairs - first), plan, rooms, kernels);
}

}  // namespace

template <>
size_t attention_workspace<float>(const AttentionInput<float>& in) {
  check_attention<float>(in);
  return Plan(in).bytes();
}
template <>
size_t attention_workspace<bfloat16>(const AttentionInput<bfloat16>& in) {
  check_attention<float>(in);
  return Plan(in).bytes();
}
template <>
void attention<float>(const AttentionInput<float>& in, Heads<float> out, Heads<float> lse,
                      std::span<std::byte> workspace) {
  forward(in, out, lse, workspace);
}
template <>
void attention<bfloat16>(const AttentionInput<bfloat16>& in, Heads<bfloat16> out, Heads<float> lse,
                         std::span<std::byte> workspace) {
  forward(in, out, lse, workspace);
}
}  // namespace qkv
