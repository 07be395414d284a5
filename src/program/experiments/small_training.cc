#include "program/experiments/small_training.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/to_size.h"
#include "ops/adam.h"
#include "ops/cross_entropy.h"

namespace qkv {

void reset_parameters(ParameterList<float>& list, uint64_t seed) {
  if (list.gradients().empty()) list.allocate_gradients();
  std::ranges::fill(list.gradients(), 0.0f);
  list.initialize(seed);
}

SmallOptimizer::SmallOptimizer(ParameterList<float>& list, const SmallTraining& training, uint64_t seed)
    : list_(list), training_(training), m_(to_size(list.size())), v_(to_size(list.size())) {
  reset_parameters(list, seed);
}

double SmallOptimizer::rate() const {
  const auto step = static_cast<double>(step_), warmup = static_cast<double>(training_.warmup);
  if (step_ < training_.warmup) return training_.rate * step / warmup;
  if (!training_.decays) return training_.rate;
  const double rest = static_cast<double>(training_.steps) - warmup;
  return training_.rate * (1 - 0.9 * std::min(1.0, (step - warmup) / std::max(rest, 1.0)));
}

void SmallOptimizer::update(int64_t count) {
  step_++;
  const double norm = std::sqrt(sum_of_squares<float>(list_.gradients())) / static_cast<double>(count);
  AdamStep step;
  step.learning_rate = rate();
  step.step = step_;
  step.gradient_scale = 1 / static_cast<double>(count);
  if (training_.clip_norm > 0 && norm > training_.clip_norm) step.gradient_scale *= training_.clip_norm / norm;
  adam_update<float>(step, list_.values(), list_.gradients(), m_, v_);
}

ModelConfig small_language_model(int64_t vocab, int64_t layers, int64_t d_model, int64_t heads, int64_t max_length) {
  ModelConfig config;
  config.encoder_layers = 0, config.decoder_layers = layers;
  config.target_vocab = vocab;
  config.d_model = d_model, config.ffn = 2 * d_model;
  config.attention.heads = heads;
  config.attention.key_width = config.attention.value_width = d_model / heads;
  config.norm.position = NormPosition::pre;
  config.norm.final = true;
  config.shared_embeddings = false;
  config.dropout.residual = 0;
  config.max_length = max_length;
  return config;
}

void append_text(Batch& batch, std::span<const int32_t> text) {
  batch.target.append(text.first(text.size() - 1));
  batch.labels.insert(batch.labels.end(), text.begin() + 1, text.end());
}

Batch texts_of(const SymbolSource& source, int64_t sequences, int64_t length, uint64_t seed, int64_t step) {
  Random random(seed, Stream::test, static_cast<uint64_t>(step));
  Batch batch;
  for (int64_t s = 0; s < sequences; s++) append_text(batch, source.text(length + 1, random));
  return batch;
}

SourceLosses source_losses(const SymbolSource& source, const Batch& batch) {
  std::vector<double> of_source;
  std::vector<int64_t> counts(to_size(source.shape().vocab()));
  for (int64_t s = 0; s < batch.target.sequences(); s++) {
    const std::span<const int32_t> read = batch.target.sequence(s);
    std::vector<int32_t> text(read.begin(), read.end());
    text.push_back(batch.labels[to_size(batch.target.offsets[to_size(s) + 1] - 1)]);
    const std::vector<double> losses = source.losses(text);
    of_source.insert(of_source.end(), losses.begin() + 1, losses.end());
  }
  for (const int32_t label : batch.labels) counts[to_size(label)]++;
  double frequencies = 0;
  for (const int64_t count : counts) {
    const double p = static_cast<double>(count) / static_cast<double>(batch.labels.size());
    if (count > 0) frequencies -= p * std::log(p);
  }
  return {mean_of_numbers(of_source), frequencies};
}

std::vector<double> token_losses(const Transformer<float>& model, const Batch& batch) {
  Arena arena;
  Context context{arena};
  Transformer<float>::Saved saved;
  model.forward(batch.source, batch.target, context, saved);
  const Matrix<float> logits = model.output().logits(saved.h, context);
  std::vector<float> loss(batch.labels.size()), nll(batch.labels.size());
  cross_entropy<float>(logits, batch.labels, 0, loss.data(), nll.data());
  return {nll.begin(), nll.end()};
}

double mean_of_numbers(std::span<const double> numbers) {
  if (numbers.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

double last_loss(const std::vector<double>& losses) {
  const size_t count = std::max<size_t>(1, losses.size() / 4);
  return mean_of_numbers(std::span(losses).last(count));
}

std::vector<double> layer_gradient_norms(const ParameterList<float>& list, int64_t layers) {
  std::vector<double> norms;
  for (int64_t layer = 0; layer < layers; layer++) {
    const std::string prefix = fmt::format("decoder.layers.{}.", layer);
    double squares = 0;
    for (const Parameter<float>& p : list.all()) {
      if (!p.name.starts_with(prefix)) continue;
      for (int64_t i = 0; i < p.size(); i++) squares += static_cast<double>(p.gradient[i]) * p.gradient[i];
    }
    norms.push_back(std::sqrt(squares));
  }
  return norms;
}

int64_t scaled(int64_t count, double effort) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(count) * effort));
}

}  // namespace qkv
