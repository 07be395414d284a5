// Training without layer normalization and with it, by the place of the norm and the learning rate, without warm-up.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/system/threads.h"
#include "program/experiments/bare_transformer.h"
#include "program/experiments/experiment.h"
#include "program/experiments/small_training.h"

namespace qkv {
namespace {

constexpr int64_t kNormLayers = 6, kNormSteps = 120, kNormTexts = 8, kNormLength = 32;
constexpr size_t kShownRate = 3;  // of the loss by step
constexpr std::array<double, 7> kRates = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1};

// A model of the library, or a bare one with residual connections and at most the final norm.
struct NormKindRow {
  const char* name;
  bool bare;
  bool final_norm;
  NormPosition position;
};
constexpr std::array<NormKindRow, 7> kNormKinds = {{{"none", true, false, NormPosition::pre},
                                                    {"final only", true, true, NormPosition::pre},
                                                    {"post", false, false, NormPosition::post},
                                                    {"pre", false, true, NormPosition::pre},
                                                    {"query", false, true, NormPosition::query},
                                                    {"branch", false, true, NormPosition::branch},
                                                    {"sandwich", false, true, NormPosition::sandwich}}};

struct NormTrial {
  std::vector<double> losses;
  double before = 0, after = 0;  // root mean square of what the attention of the last layer reads
};

double input_size_of(const BareTransformer<float>& model, const Batch& batch) { return model.input_size(batch); }

double input_size_of(const Transformer<float>& model, const Batch& batch) {
  Arena arena;
  Context context{arena};
  Transformer<float>::Saved saved;
  model.forward(batch.source, batch.target, context, saved);
  return root_mean_square<float>(saved.decoder.layers.back().self_attention.x);
}

template <class Model>
NormTrial run_norm_trial(Model& model, double rate, const SymbolSource& source, const ExperimentOptions& options) {
  NormTrial trial;
  const Batch test = texts_of(source, kNormTexts, kNormLength, options.seed, 0);
  const auto make_batch = [&](int64_t step) {
    if (step == 1) trial.before = input_size_of(model, test);
    return texts_of(source, kNormTexts, kNormLength, options.seed, step);
  };
  trial.losses = train_small(model, {scaled(kNormSteps, options.effort), rate, 0, false, 0}, options.seed, make_batch);
  trial.after = input_size_of(model, test);
  return trial;
}

NormTrial norm_trial(const NormKindRow& kind, double rate, const SymbolSource& source,
                     const ExperimentOptions& options) {
  ModelConfig config = small_language_model(source.shape().vocab(), kNormLayers, 32, 4, kNormLength);
  if (kind.bare) {
    BareTransformer<float> model(config, {true, false, kind.final_norm});
    return run_norm_trial(model, rate, source, options);
  }
  config.norm.position = kind.position;
  config.norm.final = kind.final_norm;
  Transformer<float> model(config);
  return run_norm_trial(model, rate, source, options);
}

std::vector<std::string> rate_names() {
  std::vector<std::string> names;
  for (const double rate : kRates) names.push_back(fmt::format("{}", rate));
  return names;
}

// The mean loss of the last quarter of the steps; NaN if it is not finite.
double final_loss(const NormTrial& trial) {
  const double loss = last_loss(trial.losses);
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

ExperimentResult norm_experiment(const ExperimentOptions& options) {
  const SymbolSource source({}, options.seed);
  std::vector<std::array<NormTrial, kRates.size()>> trials(kNormKinds.size());
  TrainedCount count(options, kNormKinds.size() * kRates.size());
  parallel_for(kNormKinds.size() * kRates.size(), [&](int64_t i) {
    const size_t kind = to_size(i) / kRates.size(), rate = to_size(i) % kRates.size();
    trials[kind][rate] = norm_trial(kNormKinds[kind], kRates[rate], source, options);
    count.add();
  });
  const SourceLosses bounds = source_losses(source, texts_of(source, 256, kNormLength, options.seed, 1 << 20));
  const double shown_below = std::ceil(bounds.frequencies + 1);  // in the charts
  const double learned = (bounds.source + bounds.frequencies) / 2;
  ExperimentTable losses = {
      "losses",
      fmt::format("Mean training loss of the last quarter of {} steps of Adam at a constant learning rate, {} layers "
                  "(estimated entropy of the text {:.3f}, of its symbols alone {:.3f})",
                  trials[0][0].losses.size(), kNormLayers, bounds.source, bounds.frequencies),
      "norm", rate_names()};
  ExperimentTable summary = {
      "summary",
      fmt::format("Best loss, the largest learning rate with a loss below {:.3f}, half way between "
                  "these, and what the last layer's attention reads at a rate of {}",
                  learned, kRates[kShownRate]),
      "norm",
      {"best loss", "largest rate", "RMS before training", "after"}};
  summary.legend =
      "none: x + f(x). post: norm(x + f(x)). pre: x + f(norm(x)). query: n + f(n) with n = norm(x), where keys "
      "and values come from x. branch: x + norm(f(x)). sandwich: x + norm(f(norm(x))). f is a sublayer; all but none "
      "and post have a norm before the output too, and final only has no other.";
  ExperimentChart by_rate = {fmt::format("Loss of the last quarter of the steps, below {:.0f}", shown_below),
                             "learning rate", true},
                  by_step = {
                      fmt::format("Loss at a learning rate of {}, below {:.0f}", kRates[kShownRate], shown_below),
                      "steps"};
  for (size_t kind = 0; kind < kNormKinds.size(); kind++) {
    const char* name = kNormKinds[kind].name;
    losses.add(name, {});
    by_rate.curves.push_back({name, {}}), by_step.curves.push_back({name, {}});
    double best = std::numeric_limits<double>::infinity(), largest = std::numeric_limits<double>::quiet_NaN();
    for (size_t r = 0; r < kRates.size(); r++) {
      const double loss = final_loss(trials[kind][r]);
      losses.rows.back().values.push_back(loss);
      if (loss < shown_below) by_rate.curves.back().points.push_back({kRates[r], loss});
      best = std::fmin(best, loss);
      if (loss < learned) largest = kRates[r];
    }
    const NormTrial& shown = trials[kind][kShownRate];
    for (size_t step = 0; step < shown.losses.size(); step++)
      if (shown.losses[step] < shown_below)
        by_step.curves.back().points.push_back({static_cast<double>(step + 1), shown.losses[step]});
    summary.add(name, {best, largest, shown.before, shown.after});
  }
  ExperimentResult result = {{}, {losses, summary}, {by_step, by_rate}};
  const auto largest = [&](const char* name) {
    const double rate = summary.at(name, "largest rate");
    return std::isnan(rate) ? std::string("none") : fmt::format("{:.2g}", rate);
  };
  result.findings = {
      fmt::format(
          "The largest learning rate with a loss below {:.3f} is {} without a norm, {} with one only before the "
          "output, {} with post-norm, {} with pre-norm and {} with sandwich norms. At their best rates the losses "
          "are {:.3f}, {:.3f}, {:.3f}, {:.3f} and {:.3f}.",
          learned, largest("none"), largest("final only"), largest("post"), largest("pre"), largest("sandwich"),
          summary.at("none", "best loss"), summary.at("final only", "best loss"), summary.at("post", "best loss"),
          summary.at("pre", "best loss"), summary.at("sandwich", "best loss")),
      fmt::format("The root mean square of what the last layer's attention reads at a learning rate of {} is {:.2f} "
                  "before training and {:.2f} after it with a norm only before the output, {:.2f} and {:.2f} with "
                  "pre-norm.",
                  kRates[kShownRate], summary.at("final only", "RMS before training"),
                  summary.at("final only", "after"), summary.at("pre", "RMS before training"),
                  summary.at("pre", "after"))};
  const auto is_best = [&](const char* other) {
    return summary.at("pre", "best loss") < summary.at(other, "best loss") - 0.3;
  };
  result.verdict = {
      "With a norm in each layer the model learns, at large learning rates too; without norms, or with one "
      "before the output only, it hardly does.",
      std::isnan(summary.at("none", "largest rate")) && summary.at("pre", "largest rate") >= 0.003 && is_best("none") &&
          is_best("final only")};
  return result;
}

}  // namespace qkv
