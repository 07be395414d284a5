// Softmax with temperature θ against argmax: softmax(s / θ) for the scores of one query, its entropy, and the size of
// its Jacobian (diag(a) − a aᵀ) / θ, through which the scores learn.
#include "ops/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "program/experiments/experiment.h"
#include "program/experiments/random_vectors.h"

namespace qkv {
namespace {

constexpr int64_t kScores = 8;
constexpr double kGap = 0.25;  // the two largest scores differ at least by this, 25 times the lowest temperature

struct SoftmaxAt {
  std::vector<double> weights;  // [S]
  double entropy = 0;           // in bits
  double gradient = 0;          // Frobenius norm of ∂a / ∂s; NaN of the argmax, which has none
  double maximum = 0;           // θ lse(s / θ)
  double distance = 0;          // |a − one-hot(argmax)|
};

double gradient_norm(const std::vector<double>& weights, double temperature) {
  double squares = 0;
  for (int64_t j = 0; j < kScores; j++) {
    std::vector<double> da(kScores), ds(kScores);
    da[to_size(j)] = 1;
    softmax_backward<double>({weights.data(), 1, kScores}, {da.data(), 1, kScores}, {ds.data(), 1, kScores});
    for (const double d : ds) squares += d * d;
  }
  return std::sqrt(squares) / temperature;
}

size_t place_of_largest(const std::vector<double>& scores) {
  return to_size(std::ranges::max_element(scores) - scores.begin());
}

// Returns weights with their entropy and their distance to the argmax of the scores.
SoftmaxAt with_weights(std::vector<double> weights, const std::vector<double>& scores) {
  SoftmaxAt found;
  double squares = 0;
  for (size_t j = 0; j < weights.size(); j++) {
    const double a = weights[j];
    if (a > 0) found.entropy -= a * std::log2(a);
    squares += std::pow(a - (j == place_of_largest(scores) ? 1 : 0), 2);
  }
  found.weights = std::move(weights);
  found.distance = std::sqrt(squares);
  return found;
}

SoftmaxAt softmax_at(const std::vector<double>& scores, double temperature) {
  std::vector<double> scaled = scores, weights(scores.size());
  for (double& s : scaled) s /= temperature;
  softmax<double>({scaled.data(), 1, kScores}, {weights.data(), 1, kScores});
  SoftmaxAt found = with_weights(std::move(weights), scores);
  const size_t best = place_of_largest(scores);
  double sum = 0;
  for (const double s : scaled) sum += std::exp(s - scaled[best]);
  found.maximum = scores[best] + temperature * std::log(sum);
  found.gradient = gradient_norm(found.weights, temperature);
  return found;
}

SoftmaxAt argmax_at(const std::vector<double>& scores) {
  std::vector<double> one_hot(scores.size());
  one_hot[place_of_largest(scores)] = 1;
  SoftmaxAt found = with_weights(std::move(one_hot), scores);
  found.maximum = scores[place_of_largest(scores)];
  found.gradient = std::numeric_limits<double>::quiet_NaN();
  return found;
}

// Returns random scores, the largest first. Draws again until the two largest differ by kGap.
std::vector<double> separated_scores(uint64_t seed) {
  Random random(seed, Stream::test);
  std::vector<double> scores;
  do {
    scores = normal_numbers<double>(kScores, random);
    std::ranges::sort(scores, std::greater<>());
  } while (scores[0] - scores[1] < kGap);
  return scores;
}

}  // namespace

ExperimentResult softmax_experiment(const ExperimentOptions& options) {
  const std::vector<double> scores = separated_scores(options.seed);
  ExperimentTable table = {
      "temperatures",
      fmt::format("softmax(s / θ) of {} random scores, the largest {:.3f} and {:.3f} (at least {} apart)", kScores,
                  scores[0], scores[1], kGap),
      "θ",
      {"largest weight", "second", "smallest", "entropy (bits)", "distance to argmax", "θ lse(s/θ) − max", "gradient"}};
  const auto add = [&](const std::string& name, const SoftmaxAt& at) {
    table.add(name, {at.weights[0], at.weights[1], at.weights.back(), at.entropy, at.distance, at.maximum - scores[0],
                     at.gradient});
  };
  for (const double temperature : {100.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01})
    add(fmt::format("{}", temperature), softmax_at(scores, temperature));
  add("argmax", argmax_at(scores));

  ExperimentChart weights = {"Weights of the keys", "temperature", true},
                  sizes = {"Entropy (bits) and gradient", "temperature", true};
  for (int64_t j = 0; j < kScores; j++) weights.curves.push_back({fmt::format("score {:.2f}", scores[to_size(j)]), {}});
  sizes.curves = {{"entropy", {}}, {"norm of the gradient", {}}};
  double best = 0, place = 0;
  for (int i = -80; i <= 80; i++) {
    const double temperature = std::pow(10, i / 40.0);
    const SoftmaxAt at = softmax_at(scores, temperature);
    for (size_t j = 0; j < to_size(kScores); j++) weights.curves[j].points.push_back({temperature, at.weights[j]});
    sizes.curves[0].points.push_back({temperature, at.entropy});
    sizes.curves[1].points.push_back({temperature, at.gradient});
    if (at.gradient > best) best = at.gradient, place = temperature;
  }
  ExperimentResult result = {{}, {table}, {weights, sizes}};
  result.findings = {
      fmt::format("With a small temperature the softmax is the argmax (at 0.01 the largest weight is {:.6f}), with a "
                  "large one the mean (at 100 it is {:.3f}; 1/{} is {:.3f}).",
                  table.at("0.01", "largest weight"), table.at("100", "largest weight"), kScores, 1.0 / kScores),
      fmt::format("The argmax has no gradient. That of the softmax is largest, {:.2f}, at a temperature of {:.2g}, and "
                  "vanishes towards both ends: {:.1e} at 0.01, {:.1e} at 100.",
                  best, place, table.at("0.01", "gradient"), table.at("100", "gradient"))};
  result.verdict = {
      "The softmax is a smooth argmax: it goes from the mean to the argmax as the temperature falls, and "
      "only in between do the scores get a gradient.",
      table.at("0.01", "distance to argmax") < 1e-3 && table.at("100", "entropy (bits)") > 2.99 &&
          std::max(table.at("0.01", "gradient"), table.at("100", "gradient")) < 0.1 * best};
  return result;
}

}  // namespace qkv
