// Gradients and steps of the optimizer on the host.
#pragma once

#include "model/replicas.h"
#include "model/text_parts.h"
#include "train/engine/gradient_engine.h"
#include "train/loop/shared_steps.h"
#include "train/optimizer/optimizer_state.h"
#include "train/optimizer/step_table.h"
#include "train/tasks/task.h"

namespace qkv {

class HostGradients : public BatchGradients {
 public:
  // The gradients of a model for the batches of a task. Both must outlive it.
  HostGradients(const Transformer<float>& model, Task& task)
      : model_(model), table_(task.step_table()), in_slices_(task.in_slices()) {}

  Loss loss_and_gradient(const Batch& batch, Objective objective, Context& c) override;
  Loss loss_and_gradient(const Batch& batch, const Samples& samples, Context& c) override;
  Loss loss_and_gradient(const Batch& batch, OutputLoss loss_of, int64_t part_tokens, Context& c) override;
  const Transformer<float>* host_model() const override { return &model_; }
  size_t bytes() const override { return replicas_.bytes(); }

  StepTable* table() const { return table_; }  // null unless updates are sparse

 private:
  Loss in_slices(const Batch& batch, Replicas::LossOf loss_of, Context& c);

  const Transformer<float>& model_;
  StepTable* table_;
  bool in_slices_;
  Replicas replicas_;
  TextParts<float> parts_;
};

class HostEngine : public GradientEngine {
 public:
  // All arguments must outlive it.
  HostEngine(const Transformer<float>& model, Task& task, OptimizerState& optimizer, SharedSteps& steps)
      : gradients_(model, task), optimizer_(optimizer), steps_(steps) {}

  Loss loss_and_gradient(const Batch& batch, Objective objective, Context& c) override {
    return gradients_.loss_and_gradient(batch, objective, c);
  }
  Loss loss_and_gradient(const Batch& batch, const Samples& samples, Context& c) override {
    return gradients_.loss_and_gradient(batch, samples, c);
  }
  Loss loss_and_gradient(const Batch& batch, OutputLoss loss_of, int64_t part_tokens, Context& c) override {
    return gradients_.loss_and_gradient(batch, loss_of, part_tokens, c);
  }
  double update(int64_t step, int64_t tokens) override;
  void clear_gradients() override { optimizer_.clear_gradients(); }
  const Transformer<float>* host_model() const override { return gradients_.host_model(); }
  void catch_up(int64_t step) override;
  size_t bytes() const override { return gradients_.bytes(); }

 private:
  HostGradients gradients_;
  OptimizerState& optimizer_;
  SharedSteps& steps_;
};

}  // namespace qkv
