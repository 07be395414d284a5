// Depth with and without residual connections: x + f(norm(x)) against f(norm(x)) around each sublayer, on text of which
// the entropy is known.
#include <fmt/format.h>

#include <array>

#include "core/system/threads.h"
#include "program/experiments/bare_transformer.h"
#include "program/experiments/experiment.h"
#include "program/experiments/small_training.h"

namespace qkv {
namespace {

constexpr std::array<int64_t, 5> kDepths = {16, 8, 4, 2, 1};  // the longest trainings first
constexpr int64_t kDepthSteps = 120, kDepthTexts = 16, kDepthLength = 32;

struct DepthTrial {
  std::vector<double> losses;
  double gradient_ratio = 0;  // first layer to last, before training
  double variety = 0;         // of the tokens after the last layer, before training
};

DepthTrial train_depth(int64_t depth, bool residual, const SymbolSource& source, const ExperimentOptions& options) {
  BareTransformer<float> model(small_language_model(source.shape().vocab(), depth, 32, 4, kDepthLength),
                               {residual, true});
  const SmallTraining training = {scaled(kDepthSteps, options.effort), 3e-3};
  const auto make_batch = [&](int64_t step) { return texts_of(source, kDepthTexts, kDepthLength, options.seed, step); };
  DepthTrial trial;
  const Batch batch = make_batch(0);
  const std::vector<double> norms = initial_gradient_norms(model, batch, depth, options.seed);
  trial.gradient_ratio = norms.front() / norms.back();
  trial.variety = model.variety(batch);
  trial.losses = train_small(model, training, options.seed, make_batch);
  return trial;
}

}  // namespace

ExperimentResult depth_experiment(const ExperimentOptions& options) {
  const SymbolSource source({}, options.seed);
  constexpr size_t kTrials = 2 * kDepths.size();
  std::vector<DepthTrial> trials(kTrials);
  TrainedCount count(options, kTrials);
  parallel_for(kTrials, [&](int64_t i) {
    trials[to_size(i)] = train_depth(kDepths[to_size(i / 2)], i % 2 == 0, source, options);
    count.add();
  });
  const SourceLosses bounds = source_losses(source, texts_of(source, 256, kDepthLength, options.seed, 1 << 20));
  ExperimentTable table = {
      "depths",
      fmt::format("Mean training loss of the last quarter of {} steps (estimated entropy of the text {:.3f}, of its "
                  "symbols alone {:.3f}); before training: gradient of the first layer relative to the last, and how "
                  "much tokens differ after the last layer",
                  trials[0].losses.size(), bounds.source, bounds.frequencies),
      "layers",
      {"loss, residual", "loss, without", "gradient, residual", "gradient, without", "variety, residual",
       "variety, without"}};
  ExperimentChart by_depth = {"Loss of the last quarter of the steps", "layers", true},
                  by_step = {"Loss of 16 layers", "steps"},
                  variety = {"Variety of the tokens before training", "layers", true, true};
  by_depth.curves = variety.curves = by_step.curves = {{"with residual connections", {}}, {"without", {}}};
  for (size_t i = kDepths.size(); i-- > 0;) {
    const DepthTrial &with = trials[2 * i], &without = trials[2 * i + 1];
    table.add(fmt::format("{}", kDepths[i]), {last_loss(with.losses), last_loss(without.losses), with.gradient_ratio,
                                              without.gradient_ratio, with.variety, without.variety});
    for (const size_t k : {0, 1}) {
      const DepthTrial& trial = trials[2 * i + k];
      const double x = static_cast<double>(kDepths[i]);
      by_depth.curves[k].points.push_back({x, last_loss(trial.losses)});
      variety.curves[k].points.push_back({x, trial.variety});
    }
  }
  for (const size_t k : {0, 1})
    for (size_t step = 0; step < trials[k].losses.size(); step++)
      by_step.curves[k].points.push_back({static_cast<double>(step + 1), trials[k].losses[step]});
  by_depth.curves.push_back(
      {"entropy of the symbols alone (estimate)", {{1, bounds.frequencies}, {16, bounds.frequencies}}});
  by_depth.curves.push_back({"entropy of the text (estimate)", {{1, bounds.source}, {16, bounds.source}}});
  ExperimentResult result = {{}, {table}, {by_depth, by_step, variety}};
  result.findings = {
      fmt::format("With residual connections the loss is {:.3f} with one layer and {:.3f} with 16, without them {:.3f} "
                  "and {:.3f}. The symbols alone have an entropy of about {:.3f}.",
                  table.at("1", "loss, residual"), table.at("16", "loss, residual"), table.at("1", "loss, without"),
                  table.at("16", "loss, without"), bounds.frequencies),
      fmt::format("Before training, the differences between the tokens after 16 layers are {:.2g} % of the squared "
                  "length of the vectors with residual connections, {:.2g} % without.",
                  100 * table.at("16", "variety, residual"), 100 * table.at("16", "variety, without"))};
  result.verdict = {
      "Deep models need residual connections: without them, the tokens become alike from layer to layer, and "
      "16 layers learn less.",
      table.at("16", "loss, residual") < table.at("16", "loss, without") - 0.1 &&
          table.at("16", "variety, without") < 0.2 * table.at("16", "variety, residual")};
  return result;
}

}  // namespace qkv
