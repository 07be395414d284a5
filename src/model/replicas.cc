#include "model/replicas.h"

#include <algorithm>

#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// Copies sequences [begin, end).
void copy(const Packed& from, int64_t begin, int64_t end, Packed& to) {
  const int32_t first = from.offsets[to_size(begin)], last = from.offsets[to_size(end)];
  const auto assign = [&](const std::vector<int32_t>& values, std::vector<int32_t>& part) {
    if (values.empty()) return part.clear();
    part.assign(values.begin() + first, values.begin() + last);
  };
  assign(from.ids, to.ids);
  assign(from.positions, to.positions);
  assign(from.gaps, to.gaps);
  assign(from.types, to.types);
  to.offsets.assign(from.offsets.begin() + begin, from.offsets.begin() + end + 1);
  for (int32_t& offset : to.offsets) offset -= first;
}

void copy(const Batch& batch, int64_t begin, int64_t end, Batch& slice) {
  if (batch.target.sequences() > 0) copy(batch.target, begin, end, slice.target);
  if (batch.source.sequences() > 0) copy(batch.source, begin, end, slice.source);
  const auto first = batch.labels_before(begin), last = batch.labels_before(end);
  slice.labels.assign(batch.labels.begin() + first, batch.labels.begin() + last);
  if (batch.masked.empty()) return slice.masked.clear();
  slice.masked.assign(batch.masked.begin() + first, batch.masked.begin() + last);
  for (int32_t& token : slice.masked) token -= batch.source.offsets[to_size(begin)];
}

}  // namespace

// Slices have equal numbers of tokens, as far as sequences allow.
void Replicas::slice(const Batch& batch) {
  const Packed& packed = batch.labelled();
  const int64_t tokens = packed.tokens(), slices = (tokens + kSliceTokens - 1) / kSliceTokens;
  slices_.assign(1, 0);
  int32_t first = 0;
  for (int64_t s = 1; s <= packed.sequences(); s++) {
    const int32_t end = packed.offsets[to_size(s)];
    if ((end - first) * slices < tokens && s < packed.sequences()) continue;
    slices_.push_back(s);
    first = end;
  }
}

void Replicas::make_replicas(const Transformer<float>& model, size_t count) {
  const std::span<float> values = model.parameters().values();
  if (!replicas_.empty() && replicas_.front()->parameters().values().data() != values.data()) replicas_.clear();
  while (replicas_.size() < count) {
    replicas_.push_back(model.make_replica());
    replicas_.back()->parameters().use(values, nullptr);
    size_t next = 0;
    replicas_.back()->parameters().freeze(
        [&](const Parameter<float>&) { return model.parameters().all()[next++].frozen; });
    replicas_.back()->parameters().allocate_gradients();
  }
  while (workers_.size() < to_size(threads())) workers_.emplace_back();
  losses_.resize(count);
}

// Each block of elements is summed over the replicas in order.
void Replicas::add_gradients(const Transformer<float>& model, int64_t count) const {
  const std::span<float> sum = model.parameters().gradients();
  parallel_blocks(std::ssize(sum), 1 << 13, [&](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < count; r++) {
      const float* part = replicas_[to_size(r)]->parameters().gradients().data();
      for (int64_t e = begin; e < end; e++) sum[to_size(e)] += part[e];
    }
  });
}

// The first slice with an output that is not finite counts.
void Replicas::take_checks(const Batch& batch, const Context& c) const {
  const bool has_source = batch.source.sequences() > 0;
  for (size_t i = 0; i < checks_.size(); i++) {
    const int64_t first = slices_[i];
    c.check->take(checks_[i], has_source ? batch.source.offsets[to_size(first)] : 0, batch.labels_before(first));
  }
}

Loss Replicas::loss_and_gradient(const Transformer<float>& model, const Batch& batch, LossOf loss_of, Context& c) {
  if (model.parameters().size() > kMaxParameters || model.has_adapters()) return loss_of(model, batch, 0, c);
  c.use(std::ssize(model.parameters().all()));
  slice(batch);
  const auto slices = std::ssize(slices_) - 1, count = std::min<int64_t>(slices, kMaxReplicas);
  make_replicas(model, to_size(count));
  checks_.assign(c.check ? to_size(slices) : 0, {});
  parallel_for_throwing(count, [&](int64_t r) {
    const Transformer<float>& replica = *replicas_[to_size(r)];
    Worker& worker = workers_[to_size(thread_number())];
    std::ranges::fill(replica.parameters().gradients(), 0.0f);
    Loss& loss = losses_[to_size(r)] = Loss();
    for (int64_t i = slices * r / count; i < slices * (r + 1) / count; i++) {
      const int64_t begin = slices_[to_size(i)], end = slices_[to_size(i) + 1];
      copy(batch, begin, end, worker.slice);
      const uint64_t seed = c.seed + static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15u;
      Context context{worker.arena, c.training, seed, c.step, c.recompute, c.int8};
      if (c.check) context.check = &checks_[to_size(i)];
      const Arena::Scope scope(worker.arena);
      loss += loss_of(replica, worker.slice, batch.labels_before(begin), context);
    }
  });
  take_checks(batch, c);
  add_gradients(model, count);
  Loss total;
  for (const Loss& loss : losses_) total += loss;
  return total;
}

Loss Replicas::loss_and_gradient(const Transformer<float>& model, const Batch& batch, Objective objective, Context& c) {
  const auto loss_of = [&](const Transformer<float>& replica, const Batch& slice, int64_t, Context& context) {
    return replica.loss_and_gradient(slice, objective, context);
  };
  return loss_and_gradient(model, batch, loss_of, c);
}

size_t Replicas::bytes() const {
  size_t total = 0;
  for (const Worker& worker : workers_) total += worker.arena.high_water();
  for (const auto& replica : replicas_) total += to_size(replica->parameters().size()) * sizeof(float);
  return total;
}

}  // namespace qkv
