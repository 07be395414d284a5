// The gradient of each layer before training, by the place of the norm, and without norms or residual connections.
#include <fmt/format.h>

#include "program/experiments/bare_transformer.h"
#include "program/experiments/experiment.h"
#include "program/experiments/small_training.h"

namespace qkv {
namespace {

constexpr int64_t kGradientLayers = 12, kGradientTexts = 16, kGradientLength = 32;
constexpr int64_t kGradientDepths[] = {2, 4, 8, 16};

struct GradientKind {
  const char* name;
  NormPosition position;
  bool bare = false;
  BareParts parts = {};
};
constexpr GradientKind kGradientKinds[] = {{"post-norm", NormPosition::post},
                                           {"pre-norm", NormPosition::pre},
                                           {"branch", NormPosition::branch},
                                           {"sandwich", NormPosition::sandwich},
                                           {"no norm", NormPosition::pre, true, {true, false, false}},
                                           {"no residual", NormPosition::pre, true, {false, true, true}},
                                           {"neither", NormPosition::pre, true, {false, false, false}}};

// Returns the norm of the gradient of each layer.
std::vector<double> gradient_norms(const GradientKind& kind, int64_t layers, const Batch& batch, int64_t vocab,
                                   uint64_t seed) {
  ModelConfig config = small_language_model(vocab, layers, 32, 4, kGradientLength);
  if (kind.bare) {
    BareTransformer<float> model(config, kind.parts);
    return initial_gradient_norms(model, batch, layers, seed);
  }
  config.norm.position = kind.position;
  config.norm.final = kind.position != NormPosition::post;
  Transformer<float> model(config);
  return initial_gradient_norms(model, batch, layers, seed);
}

}  // namespace

ExperimentResult gradients_experiment(const ExperimentOptions& options) {
  const SymbolSource source({}, options.seed);
  const Batch batch = texts_of(source, kGradientTexts, kGradientLength, options.seed, 0);
  const auto norms_of = [&](const GradientKind& kind, int64_t layers) {
    return gradient_norms(kind, layers, batch, source.shape().vocab(), options.seed);
  };
  ExperimentTable by_layer = {
      "layers",
      fmt::format("Norm of the gradient of the mean loss with respect to the parameters of each "
                  "of {} layers, before training",
                  kGradientLayers),
      "layer",
      {}};
  by_layer.legend =
      "post-norm: norm(x + f(x)). pre-norm: x + f(norm(x)). branch: x + norm(f(x)). sandwich: x + norm(f(norm(x))). no "
      "norm: x + f(x). no residual: f(norm(x)). neither: f(x). f is a sublayer.";
  ExperimentTable by_depth = {
      "depths", "The same of the first and of the last layer, by number of layers", "layers", {}};
  for (int64_t layer = 1; layer <= kGradientLayers; layer++) by_layer.add(fmt::format("{}", layer), {});
  by_layer.add("first / last", {});
  for (const int64_t depth : kGradientDepths)
    for (const char* which : {"first", "last"}) by_depth.add(fmt::format("{}, {}", depth, which), {});
  ExperimentChart layers_chart = {"Norm of the gradient by layer", "layer", false, true},
                  depths_chart = {"Norm of the gradient of the last layer", "layers of the model", true, true};
  for (const GradientKind& kind : kGradientKinds) {
    by_layer.columns.push_back(kind.name), by_depth.columns.push_back(kind.name);
    layers_chart.curves.push_back({kind.name, {}}), depths_chart.curves.push_back({kind.name, {}});
    const std::vector<double> norms = norms_of(kind, kGradientLayers);
    for (size_t i = 0; i < norms.size(); i++) {
      by_layer.rows[i].values.push_back(norms[i]);
      layers_chart.curves.back().points.push_back({static_cast<double>(i + 1), norms[i]});
    }
    by_layer.rows.back().values.push_back(norms.front() / norms.back());
    for (size_t d = 0; d < std::size(kGradientDepths); d++) {
      const std::vector<double> found = norms_of(kind, kGradientDepths[d]);
      by_depth.rows[2 * d].values.push_back(found.front());
      by_depth.rows[2 * d + 1].values.push_back(found.back());
      depths_chart.curves.back().points.push_back({static_cast<double>(kGradientDepths[d]), found.back()});
    }
  }
  ExperimentResult result = {{}, {by_layer, by_depth}, {layers_chart, depths_chart}};
  const auto at = [&](const char* row, const char* kind) { return by_depth.at(row, kind); };
  result.findings = {
      fmt::format("From 2 to 16 layers the norm of the gradient of the last layer goes from {:.2f} to {:.2f} with "
                  "pre-norm, and from {:.2f} to {:.2f} with post-norm.",
                  at("2, last", "pre-norm"), at("16, last", "pre-norm"), at("2, last", "post-norm"),
                  at("16, last", "post-norm")),
      fmt::format("That of the first of 16 layers is {:.2f} with pre-norm, {:.1e} without norms, {:.1e} with norms but "
                  "without residual connections, and {:.1e} without both.",
                  at("16, first", "pre-norm"), at("16, first", "no norm"), at("16, first", "no residual"),
                  at("16, first", "neither"))};
  const double ratio = by_layer.at("first / last", "pre-norm");
  result.verdict = {
      "With pre-norm the gradient reaches every layer in a similar size; without norms it explodes with the "
      "depth, and without norms and residual connections it vanishes.",
      ratio > 0.3 && ratio < 3 && at("16, first", "no norm") > 1000 * at("2, first", "no norm") &&
          at("16, first", "neither") < 0.01 * at("2, first", "neither")};
  return result;
}

}  // namespace qkv
