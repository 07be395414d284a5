#include "train/engine/host_engine.h"

namespace qkv {

Loss HostGradients::loss_and_gradient(const Batch& batch, Objective objective, Context& c) {
  return in_slices(
      batch,
      [&](const Transformer<float>& model, const Batch& part, int64_t, Context& context) {
        return model.loss_and_gradient(part, objective, context);
      },
      c);
}

Loss HostGradients::loss_and_gradient(const Batch& batch, const Samples& samples, Context& c) {
  return in_slices(
      batch,
      [&](const Transformer<float>& model, const Batch& part, int64_t first, Context& context) {
        return samples_loss_and_gradient(model, part, first, samples, context);
      },
      c);
}

Loss HostGradients::loss_and_gradient(const Batch& batch, OutputLoss loss_of, int64_t part_tokens, Context& c) {
  return parts_.loss_and_gradient(model_, batch, loss_of, part_tokens, c);
}

Loss HostGradients::in_slices(const Batch& batch, Replicas::LossOf loss_of, Context& c) {
  const Transformer<float>& model = table_ ? table_->gather(model_) : model_;
  return in_slices_ ? replicas_.loss_and_gradient(model, batch, loss_of, c) : loss_of(model, batch, 0, c);
}

double HostEngine::update(int64_t step, int64_t tokens) {
  if (const StepTable* table = gradients_.table()) return optimizer_.update(step, tokens, table->gradients());
  return steps_.update(optimizer_, step, tokens);
}

void HostEngine::catch_up(int64_t step) {
  if (const StepTable* table = gradients_.table()) optimizer_.catch_up(step, table->items());
}

}  // namespace qkv
