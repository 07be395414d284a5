// The gradient of a batch for a small model, in parallel over sequences instead of inside each op. A thread takes a few
// sequences through the whole model, forward and backward, while their activations are in its cache. Replicas share the
// weights of the model and have gradients of their own, which are added up in a fixed order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/function_ref.h"
#include "model/transformer.h"

namespace qkv {

class Replicas {
 public:
  // Returns the loss of a batch and adds its gradient to the gradients of the model. loss_of(replica, slice, first, c)
  // returns the loss of a slice of the batch, whose first label is label `first` of the batch, and adds the
  // gradient to the replica's. Slices depend only on the batch; each has its own dropout masks. A model of more than
  // kMaxParameters takes the batch as one slice, because each replica needs memory for all gradients. So does a model
  // with adapters.
  using LossOf = FunctionRef<Loss(const Transformer<float>& replica, const Batch& slice, int64_t first, Context& c)>;
  Loss loss_and_gradient(const Transformer<float>& model, const Batch& batch, LossOf loss_of, Context& c);

  // The same with the model's own loss.
  Loss loss_and_gradient(const Transformer<float>& model, const Batch& batch, Objective objective, Context& c);

  size_t bytes() const;  // largest amount used so far for activations and gradients

 private:
  static constexpr int64_t kMaxParameters = 1 << 20, kMaxReplicas = 16, kSliceTokens = 400;

  void slice(const Batch& batch);
  void make_replicas(const Transformer<float>& model, size_t count);
  void add_gradients(const Transformer<float>& model, int64_t count) const;
  void take_probes(const Batch& batch, const Context& c) const;

  struct Worker {
    Arena arena;
    Batch slice;
  };
  std::deque<Worker> workers_;  // one per thread
  std::vector<std::unique_ptr<Transformer<float>>> replicas_;
  std::vector<int64_t> slices_;                 // the first sequence of each slice, then the number of sequences
  std::vector<Loss> losses_;                    // of the replicas
  std::vector<std::unique_ptr<Probe>> probes_;  // of the slices
};

}  // namespace qkv
