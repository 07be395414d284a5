#include "model/replicas.h"

#include <algorithm>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "model/batch_slice.h"

namespace qkv {

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

void Replicas::take_probes(const Batch& batch, const Context& c) const {
  const bool has_source = batch.source.sequences() > 0;
  for (size_t i = 0; i < probes_.size(); i++) {
    const int64_t first = slices_[i];
    if (probes_[i])
      c.probe->take(*probes_[i], has_source ? batch.source.offsets[to_size(first)] : 0, batch.labels_before(first));
  }
}

Loss Replicas::loss_and_gradient(const Transformer<float>& model, const Batch& batch, LossOf loss_of, Context& c) {
  if (model.parameters().size() > kMaxParameters || model.has_adapters()) return loss_of(model, batch, 0, c);
  c.use(std::ssize(model.parameters().all()));
  slice(batch);
  const auto slices = std::ssize(slices_) - 1, count = std::min<int64_t>(slices, kMaxReplicas);
  make_replicas(model, to_size(count));
  probes_.clear();
  for (int64_t i = 0; i < slices && c.probe; i++) probes_.push_back(c.probe->of_part());
  parallel_for_throwing(count, [&](int64_t r) {
    const Transformer<float>& replica = *replicas_[to_size(r)];
    Worker& worker = workers_[to_size(thread_number())];
    std::ranges::fill(replica.parameters().gradients(), 0.0f);
    Loss& loss = losses_[to_size(r)] = Loss();
    for (int64_t i = slices * r / count; i < slices * (r + 1) / count; i++) {
      const int64_t begin = slices_[to_size(i)], end = slices_[to_size(i) + 1];
      copy_sequences(batch, begin, end, worker.slice);
      const uint64_t seed = c.seed + static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15u;
      Context context{worker.arena, c.training, seed, c.step, c.recompute, c.int8};
      if (c.probe) context.probe = probes_[to_size(i)].get();
      const Arena::Scope scope(worker.arena);
      loss += loss_of(replica, worker.slice, batch.labels_before(begin), context);
    }
  });
  take_probes(batch, c);
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
