// Training of small models in memory: Adam on batches that an experiment makes.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/batch.h"
#include "model/layers/context.h"
#include "model/layers/output.h"
#include "model/layers/parameter.h"
#include "model/transformer.h"
#include "program/experiments/symbol_source.h"
#include "qkv/config.h"

namespace qkv {

struct SmallTraining {
  int64_t steps = 200;
  double rate = 3e-3;    // the highest learning rate
  int64_t warmup = 20;   // steps in which the rate rises linearly; 0 means none
  bool decays = true;    // whether the rate then falls linearly to a tenth
  double clip_norm = 1;  // of the mean gradient; 0 means no clipping
};

// Sets initial values, and gradients of 0, which are allocated if the list has none.
void reset_parameters(ParameterList<float>& list, uint64_t seed);

// Adam (β₁ 0.9, β₂ 0.98) over all parameters of a model.
class SmallOptimizer {
 public:
  // Resets the parameters of the list, which must outlive the optimizer.
  SmallOptimizer(ParameterList<float>& list, const SmallTraining& training, uint64_t seed);

  // Updates the parameters given the sum of the gradients of `count` losses, and clears it.
  void update(int64_t count);

 private:
  double rate() const;

  ParameterList<float>& list_;
  SmallTraining training_;
  std::vector<float> m_, v_;
  int64_t step_ = 0;
};

// A decoder-only model with pre-norm and tied embeddings. The feed-forward network has width 2d, d_k = d_v = d / heads.
ModelConfig small_language_model(int64_t vocab, int64_t layers, int64_t d_model, int64_t heads, int64_t max_length);

// Appends a sequence: the model reads all but the last symbol, and predicts all but the first.
void append_text(Batch& batch, std::span<const int32_t> text);

// Returns texts of a source for a step of training, or other ones for another step.
Batch texts_of(const SymbolSource& source, int64_t sequences, int64_t length, uint64_t seed, int64_t step);

// Losses of a batch: the mean of −log p over its labels, for the source itself, which estimates its entropy, and for a
// model that only knows how often each symbol occurs. On average no model of a source has less than its entropy.
struct SourceLosses {
  double source = 0, frequencies = 0;
};
SourceLosses source_losses(const SymbolSource& source, const Batch& batch);

// Trains on batches and returns the loss per label of each step, in nats. after_step(step), counted from 1, may be
// null. make_batch(step) returns what model.loss_and_gradient(batch, objective, context) reads.
template <class Model, class MakeBatch>
std::vector<double> train_small(Model& model, const SmallTraining& training, uint64_t seed, MakeBatch&& make_batch,
                                const std::function<void(int64_t step)>& after_step = {}) {
  SmallOptimizer optimizer(model.parameters(), training, seed);
  Arena arena;
  std::vector<double> losses;
  for (int64_t step = 1; step <= training.steps; step++) {
    const auto batch = make_batch(step);
    Context context{arena, true, seed, static_cast<uint32_t>(step)};
    const Loss loss = model.loss_and_gradient(batch, Objective{}, context);
    optimizer.update(loss.tokens);
    losses.push_back(loss.nll / static_cast<double>(loss.tokens));
    if (after_step) after_step(step);
  }
  return losses;
}

// Returns −log p of each label, in nats.
std::vector<double> token_losses(const Transformer<float>& model, const Batch& batch);

// Returns the mean training loss of the last quarter of the steps, and at least of the last one.
double last_loss(const std::vector<double>& losses);

// Returns the mean of numbers; NaN of none.
double mean_of_numbers(std::span<const double> numbers);

// Returns √(mean of x²) over all elements.
template <class Real>
double root_mean_square(Matrix<const Real> x) {
  double squares = 0;
  for (int64_t n = 0; n < x.rows; n++)
    for (int64_t i = 0; i < x.cols; i++) squares += static_cast<double>(x(n, i)) * x(n, i);
  return std::sqrt(squares / static_cast<double>(x.rows * x.cols));
}

// Returns the norm of the sum of gradients of each layer of the decoder, whose parameters are named decoder.layers.N.
std::vector<double> layer_gradient_norms(const ParameterList<float>& list, int64_t layers);

// Returns the norm of the gradient of the mean loss with respect to each layer, before training.
template <class Model>
std::vector<double> initial_gradient_norms(Model& model, const Batch& batch, int64_t layers, uint64_t seed) {
  reset_parameters(model.parameters(), seed);
  Arena arena;
  Context context{arena};
  const Loss loss = model.loss_and_gradient(batch, Objective{}, context);
  std::vector<double> norms = layer_gradient_norms(model.parameters(), layers);
  for (double& norm : norms) norm /= static_cast<double>(loss.tokens);
  return norms;
}

// Scales a number of steps or sequences by the effort of an experiment; at least 1.
int64_t scaled(int64_t count, double effort);

}  // namespace qkv
