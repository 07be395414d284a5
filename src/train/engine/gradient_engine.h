// The model that is trained, where it computes: losses and gradients of batches, and steps of the optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/batch.h"
#include "core/function_ref.h"
#include "model/layers/context.h"
#include "model/layers/output.h"
#include "model/layers/sampled_loss.h"
#include "model/transformer.h"

namespace qkv {

// The items that the tokens of a batch are scored against, for losses over samples.
struct Samples {
  SampledLoss kind;
  std::span<const int32_t> ids;  // [tokens, of_token]: the next item, then its negatives; or negatives of all tokens
  std::span<const float> log_draws;  // of each id, as in model/layers/sampled_loss.h
  int64_t of_token = 0;              // 0: all tokens share the negatives
};

// Losses and gradients of batches.
class BatchGradients {
 public:
  virtual ~BatchGradients() = default;

  // Return the loss of a batch and add its gradient to that of the step.
  virtual Loss loss_and_gradient(const Batch& batch, Objective objective, Context& c) = 0;
  virtual Loss loss_and_gradient(const Batch& batch, const Samples& samples, Context& c) = 0;
  // The same for the outputs of the text head. loss_of(v, dv) gets those of all sequences of the batch, v: [sequences,
  // width], assigns dv, and adds to the gradients of the parameters that it reads itself, such as the temperature. It
  // is called once. Sequences are computed in parts of at most part_tokens tokens (model/text_parts.h).
  using OutputLoss = FunctionRef<Loss(Matrix<const float> v, Matrix<float> dv)>;
  virtual Loss loss_and_gradient(const Batch& batch, OutputLoss loss_of, int64_t part_tokens, Context& c) = 0;

  // Returns the model of the host whose gradients are computed, or null on a device.
  virtual const Transformer<float>* host_model() const { return nullptr; }
  // Returns the bytes of activations and gradients outside of arenas.
  virtual size_t bytes() const { return 0; }
  // Waits until the gradients are computed.
  virtual void wait() {}
};

class GradientEngine : public BatchGradients {
 public:
  // Performs step `step` of the optimizer with the gradient, which is a sum over `tokens` tokens, and sets the gradient
  // to zero. Returns the norm of the mean gradient before clipping. If it is not finite, the weights stay.
  virtual double update(int64_t step, int64_t tokens) = 0;
  virtual void clear_gradients() = 0;

  // to_host() copies weights and the state of the optimizer to the host, which evaluates and saves them. from_host()
  // copies them back.
  virtual void to_host() {}
  virtual void from_host() {}
  // Lets the weights that the current batch reads catch up on the steps until `step`.
  virtual void catch_up(int64_t /*step*/) {}
  // Returns the bytes that a device has for weights, gradients and the state of the optimizer.
  virtual size_t device_bytes() const { return 0; }
};

// Returns the loss over samples of a part of a batch, whose first token is token `first` of the batch, and adds the
// gradient to the model's.
template <class Real>
Loss samples_loss_and_gradient(const Transformer<Real>& model, const Batch& part, int64_t first, const Samples& samples,
                               Context& c) {
  const Parameter<Real>& table = model.output().weight();
  const auto loss_of = [&](Matrix<const Real> h, Matrix<Real> dh) {
    if (samples.of_token == 0)
      return shared_loss_and_gradient<Real>(table, h, part.labels, {samples.ids, samples.log_draws}, samples.kind, dh,
                                            c);
    const int64_t N = h.rows, K = samples.of_token;
    const Candidates candidates = {{samples.ids.data() + first * K, N, K},
                                   samples.log_draws.subspan(to_size(first * K), to_size(N * K))};
    return sampled_loss_and_gradient<Real>(table, h, candidates, samples.kind, dh, c);
  };
  return model.loss_and_gradient(part, loss_of, c);
}

}  // namespace qkv
