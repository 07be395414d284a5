// Positions beyond the length of training: language models trained on short sequences, and their loss at each position
// of longer ones, for every kind of positions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/system/threads.h"
#include "program/experiments/experiment.h"
#include "program/experiments/small_training.h"

namespace qkv {
namespace {

constexpr int64_t kTrained = 32, kTested = 4 * kTrained;  // tokens
constexpr int64_t kLengthSteps = 800, kLengthTexts = 32, kTestTexts = 96;

struct LengthKind {
  const char* name;
  Positions positions;
  bool relative = false;
  // Applied to the trained model, without further training.
  std::optional<RotaryScaling> scaling = {};
};
constexpr std::array<LengthKind, 8> kLengthKinds = {
    {{"sinusoidal", Positions::interleaved},
     {"learned", Positions::learned},
     {"rotary", Positions::rotary},
     {"rotary, linear scaling", Positions::rotary, false, RotaryScaling::linear},
     {"rotary, YaRN", Positions::rotary, false, RotaryScaling::yarn},
     {"ALiBi", Positions::alibi},
     {"relative bias", Positions::none, true},
     {"none", Positions::none}}};

ModelConfig length_config(const LengthKind& kind, int64_t vocab, int64_t length) {
  ModelConfig config = small_language_model(vocab, 2, 32, 4, length);
  config.positions = kind.positions;
  if (kind.relative) config.attention.relative_buckets = 16, config.attention.relative_distance = kTrained;
  return config;
}

// A model that reads longer sequences with the weights of another. A learned table has no rows for them.
std::unique_ptr<Transformer<float>> lengthened(const Transformer<float>& trained, const LengthKind& kind) {
  ModelConfig config = trained.config();
  if (kind.positions != Positions::learned) config.max_length = kTested;
  if (kind.scaling) {
    config.rotary.scaling = *kind.scaling;
    config.rotary.scale = static_cast<double>(kTested) / kTrained;
    config.rotary.context = kTrained;
    if (*kind.scaling == RotaryScaling::yarn) config.rotary.factor = 0.1 * std::log(config.rotary.scale) + 1;
  }
  auto model = std::make_unique<Transformer<float>>(config);
  std::ranges::copy(trained.parameters().values(), model->parameters().values().begin());
  return model;
}

// Returns the mean loss at each position; NaN where the model has no positions.
std::vector<double> losses_by_position(const Transformer<float>& model, const SymbolSource& source, uint64_t seed,
                                       int64_t texts) {
  const int64_t length = std::min(model.config().max_length, kTested);
  Random random(seed, Stream::test, uint64_t{1} << 20);
  Batch batch;
  for (int64_t i = 0; i < texts; i++) {
    const std::vector<int32_t> text = source.text(kTested + 1, random);
    append_text(batch, std::span(text).first(to_size(length + 1)));
  }
  const std::vector<double> losses = token_losses(model, batch);
  std::vector<double> means(to_size(kTested), std::numeric_limits<double>::quiet_NaN());
  for (int64_t p = 0; p < length; p++) {
    double sum = 0;
    for (int64_t i = 0; i < texts; i++) sum += losses[to_size(i * length + p)];
    means[to_size(p)] = sum / static_cast<double>(texts);
  }
  return means;
}

using LossesOfKinds = std::array<std::vector<double>, kLengthKinds.size()>;

// Trains one model, and measures it as each kind with the same parameters.
void train_lengths(const LengthKind& kind, const SymbolSource& source, const ExperimentOptions& options,
                   LossesOfKinds& losses) {
  Transformer<float> model(length_config(kind, source.shape().vocab(), kTrained));
  const auto make_batch = [&](int64_t step) { return texts_of(source, kLengthTexts, kTrained, options.seed, step); };
  train_small(model, {scaled(kLengthSteps, options.effort), 5e-3}, options.seed, make_batch);
  for (size_t i = 0; i < kLengthKinds.size(); i++)
    if (kLengthKinds[i].positions == kind.positions && kLengthKinds[i].relative == kind.relative)
      losses[i] = losses_by_position(*lengthened(model, kLengthKinds[i]), source, options.seed,
                                     scaled(kTestTexts, options.effort));
}

}  // namespace

ExperimentResult lengths_experiment(const ExperimentOptions& options) {
  const SymbolSource source({}, options.seed);
  LossesOfKinds losses;
  const auto is_trained = [](const LengthKind& kind) { return !kind.scaling; };
  TrainedCount count(options, to_size(std::ranges::count_if(kLengthKinds, is_trained)));
  parallel_for(kLengthKinds.size(), [&](int64_t i) {
    const LengthKind& kind = kLengthKinds[to_size(i)];
    if (!is_trained(kind)) return;
    train_lengths(kind, source, options, losses);
    count.add();
  });
  const SourceLosses bounds = source_losses(source, texts_of(source, 64, kTested, options.seed, 1 << 20));
  constexpr std::array<int64_t, 5> kEnds = {8, kTrained, 2 * kTrained, 3 * kTrained, kTested};
  ExperimentTable table = {
      "positions",
      fmt::format("Loss by position of models trained on sequences of {} tokens (estimated entropy of the text {:.3f})",
                  kTrained, bounds.source),
      "positions",
      {"1–8", "9–32", "33–64", "65–96", "97–128"}};
  ExperimentChart chart = {fmt::format("Loss by position, trained on {} tokens", kTrained), "position"};
  for (size_t i = 0; i < kLengthKinds.size(); i++) {
    std::vector<double> row;
    for (size_t e = 0; e < kEnds.size(); e++) {
      const int64_t begin = e == 0 ? 0 : kEnds[e - 1];
      row.push_back(mean_of_numbers(std::span(losses[i]).subspan(to_size(begin), to_size(kEnds[e] - begin))));
    }
    table.add(kLengthKinds[i].name, row);
    chart.curves.push_back({kLengthKinds[i].name, {}});
    constexpr int64_t kStride = 4;
    for (int64_t p = 0; p < kTested; p += kStride)
      chart.curves.back().points.push_back({static_cast<double>(p) + 0.5 * (kStride + 1),
                                            mean_of_numbers(std::span(losses[i]).subspan(to_size(p), kStride))});
  }
  ExperimentResult result = {{}, {table}, {chart}};
  const auto change = [&](const char* name) {
    return fmt::format("{:.3f} to {:.3f}", table.at(name, "9–32"), table.at(name, "97–128"));
  };
  result.findings = {
      fmt::format(
          "From tokens 9–32 to tokens 97–128 the loss goes from {} with ALiBi and {} with a relative bias, which "
          "depend on the distance alone; from {} with sinusoidal positions; from {} with rotary positions, where "
          "the model has not seen the angles beyond position {} in training.",
          change("ALiBi"), change("relative bias"), change("sinusoidal"), change("rotary"), kTrained),
      fmt::format("The same rotary model with scaled rates, without further training: {} (YaRN), {} (linear). Learned "
                  "positions have no vectors beyond the table of {}. Without positions, with the mask alone: {}.",
                  change("rotary, YaRN"), change("rotary, linear scaling"), kTrained, change("none"))};
  const auto growth = [&](const char* name) { return table.at(name, "97–128") - table.at(name, "9–32"); };
  const double lost = std::min(growth("sinusoidal"), growth("rotary"));
  result.verdict = {
      "ALiBi and rotary positions scaled by YaRN work beyond the length of training, and nearly so does a "
      "relative bias. Sinusoidal and rotary positions do worse, and learned ones have no vectors there.",
      lost > 0.1 && growth("relative bias") < lost && std::max(growth("ALiBi"), growth("rotary, YaRN")) < 0.5 * lost};
  return result;
}

}  // namespace qkv
