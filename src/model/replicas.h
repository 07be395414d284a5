// The gradient of a batch for a small model, shared out by sequences instead of op by op: a thread takes a few
// sequences through the whole model, forward and backward, while their activations are in its cache. Replicas of the
// model read its weights and have gradients of their own, which are added up in order.
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
  // loss_of(replica, part, first, c) gives the loss of a part of the batch, whose first target token is the batch's
  // `first`, and adds its gradient to the replica's parameters. The gradient of the batch is added to the model's. The
  // cut into parts depends on the batch alone; dropout draws a mask of its own for every part. A model with more than
  // kMostParameters, which every replica would have gradients of, takes the batch as one part.
  using LossOf = FunctionRef<Loss(const Transformer<float>& replica, const Batch& part, int64_t first, Context& c)>;
  Loss loss_and_gradient(const Transformer<float>& model, const Batch& batch, LossOf loss_of, Context& c);

  // The same with the model's own loss.
  Loss loss_and_gradient(const Transformer<float>& model, const Batch& batch, Objective objective, Context& c);

  size_t bytes() const;  // the most that was ever used for activations and gradients

 private:
  static constexpr int64_t kMostParameters = 1 << 20, kMostReplicas = 16, kPartTokens = 400;

  void cut(const Batch& batch);
  void make_replicas(const Transformer<float>& model, size_t count);
  void add_gradients(const Transformer<float>& model, int64_t count) const;

  struct Worker {  // of a thread
    Arena arena;
    Batch part;
  };
  std::deque<Worker> workers_;
  std::vector<std::unique_ptr<Transformer<float>>> replicas_;
  std::vector<int64_t> cuts_;  // sequences with which parts begin, and the number of sequences
  std::vector<Loss> losses_;   // of the replicas
};

}  // namespace qkv
