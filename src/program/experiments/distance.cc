// Dependencies over long distances: attention reaches every token in one step, a recurrent network in as many steps as
// there are tokens between. The gradient from the last output to the first input before training, and recall of the
// first token after training.
#include <fmt/format.h>

#include <array>

#include "core/system/threads.h"
#include "program/experiments/experiment.h"
#include "program/experiments/gated_recurrent.h"
#include "program/experiments/random_vectors.h"
#include "program/experiments/recall.h"
#include "program/experiments/small_training.h"
#include "qkv/layers.h"

namespace qkv {
namespace {

constexpr int64_t kDistanceWidth = 32, kRecurrentWidth = 40, kPathLayers = 2, kPathTrials = 8;
constexpr std::array<int64_t, 7> kPathDistances = {8, 16, 32, 64, 128, 256, 512};
constexpr std::array<int64_t, 3> kRecallDistances = {256, 64, 8};  // the longest trainings first
constexpr int64_t kRecallTexts = 16, kRecallSteps = 800;

// A random vector of length 1 in the last row, and zeros.
std::vector<double> gradient_of_last(int64_t rows, int64_t width, Random& random) {
  std::vector<double> dy(to_size(rows * width)), last = normal_numbers<double>(width, random);
  const double norm = length_of(last);
  for (int64_t i = 0; i < width; i++) dy[to_size((rows - 1) * width + i)] = last[to_size(i)] / norm;
  return dy;
}

// Both return the norm of the gradient of the first input, given a gradient of length 1 of the last output.
double path_of_attention(int64_t distance, uint64_t seed) {
  Random random(seed, Stream::test, static_cast<uint64_t>(distance));
  ModelConfig config = layers::sizes(kDistanceWidth, 2, 2 * kDistanceWidth, kPathLayers);
  config.norm.position = NormPosition::pre, config.norm.final = true;
  layers::Encoder<double> stack(config, true);
  stack.initialize(seed);
  const std::vector<double> x = normal_numbers<double>((distance + 1) * kDistanceWidth, random),
                            dy = gradient_of_last(distance + 1, kDistanceWidth, random);
  stack.forward({Matrix<const double>(x.data(), distance + 1, kDistanceWidth)});
  return length_of({stack.backward({dy.data(), distance + 1, kDistanceWidth})[0].row(0), to_size(kDistanceWidth)});
}

double path_of_recurrence(int64_t distance, uint64_t seed) {
  Random random(seed, Stream::test, static_cast<uint64_t>(distance));
  ParameterList<double> list;
  const GatedRecurrent<double> layer(list, "layer", kDistanceWidth, kDistanceWidth);
  list.allocate();
  list.allocate_gradients();
  list.initialize(seed);
  const std::vector<double> x = normal_numbers<double>((distance + 1) * kDistanceWidth, random),
                            dy = gradient_of_last(distance + 1, kDistanceWidth, random);
  Arena arena;
  Context context{arena};
  GatedRecurrent<double>::Saved saved;
  layer.forward({x.data(), distance + 1, kDistanceWidth}, 1, context, saved);
  const Matrix<double> dx = arena.matrix<double>(distance + 1, kDistanceWidth);
  layer.backward({dy.data(), distance + 1, kDistanceWidth}, dx, context, saved);
  return length_of({dx.row(0), to_size(kDistanceWidth)});
}

ExperimentTable paths(uint64_t seed) {
  ExperimentTable table = {"gradients",
                           fmt::format("Steps from the last output to the first input, and norm of its gradient before "
                                       "training, mean of {} random models",
                                       kPathTrials),
                           "distance",
                           {"steps, attention", "steps, recurrent", "gradient, attention", "gradient, recurrent"}};
  for (const int64_t distance : kPathDistances) {
    double attention = 0, recurrence = 0;
    for (uint64_t trial = 0; trial < kPathTrials; trial++) {
      attention += path_of_attention(distance, seed + trial) / kPathTrials;
      recurrence += path_of_recurrence(distance, seed + trial) / kPathTrials;
    }
    table.add(fmt::format("{}", distance), {kPathLayers, static_cast<double>(distance), attention, recurrence});
  }
  return table;
}

struct RecallTrial {
  std::vector<double> losses;
  double accuracy = 0;
  int64_t parameters = 0;
};

// Two rates for the recurrent network, because it needs a higher one to hold the token over a long distance.
struct RecallKind {
  const char* name;
  bool recurrent;
  double rate;
};
constexpr std::array<RecallKind, 3> kRecallKinds = {
    {{"Transformer", false, 5e-3}, {"GRU", true, 5e-3}, {"GRU, rate 0.02", true, 2e-2}}};

template <class Model>
RecallTrial train_recall(Model& model, int64_t distance, double rate, const ExperimentOptions& options) {
  RecallTrial trial;
  trial.losses = train_small(model, {scaled(kRecallSteps, options.effort), rate}, options.seed, [&](int64_t step) {
    return recall_texts(kRecallTexts, distance, options.seed, static_cast<uint64_t>(step));
  });
  trial.accuracy = model.accuracy(recall_texts(scaled(256, options.effort), distance, options.seed, 1 << 20));
  trial.parameters = model.parameters().size();
  return trial;
}

RecallTrial recall_trial(int64_t distance, const RecallKind& kind, const ExperimentOptions& options) {
  if (kind.recurrent) {
    RecallRecurrent model(kDistanceWidth, kRecurrentWidth);
    return train_recall(model, distance, kind.rate, options);
  }
  RecallTransformer model(kDistanceWidth, distance);
  return train_recall(model, distance, kind.rate, options);
}

}  // namespace

ExperimentResult distance_experiment(const ExperimentOptions& options) {
  constexpr size_t kKinds = kRecallKinds.size();
  std::vector<RecallTrial> trials(kKinds * kRecallDistances.size());
  TrainedCount count(options, trials.size());
  parallel_for(std::ssize(trials), [&](int64_t i) {
    const int64_t distance = kRecallDistances[to_size(i) / kKinds];
    trials[to_size(i)] = recall_trial(distance, kRecallKinds[to_size(i) % kKinds], options);
    count.add();
  });
  const ExperimentTable gradients = paths(options.seed);
  ExperimentTable recall = {
      "recall",
      fmt::format(
          "Recall of the first token after {} steps: share of right answers (chance {}), and mean training loss of the "
          "last quarter of the steps; a Transformer layer with {} parameters, a GRU with {}",
          trials[0].losses.size(), 1.0 / kRecallSymbols, trials[0].parameters, trials[1].parameters),
      "distance",
      {}};
  ExperimentChart by_distance = {"Norm of the gradient of the first token", "distance", true, true},
                  answers = {"Share of right answers after training", "distance", true};
  by_distance.curves = {{"attention", {}}, {"GRU", {}}};
  for (size_t i = 0; i < kPathDistances.size(); i++)
    for (const size_t k : {0, 1})
      by_distance.curves[k].points.push_back({static_cast<double>(kPathDistances[i]), gradients.rows[i].values[2 + k]});
  for (const RecallKind& kind : kRecallKinds) {
    recall.columns.push_back(kind.name);
    answers.curves.push_back({kind.name, {}});
  }
  for (const RecallKind& kind : kRecallKinds) recall.columns.push_back(fmt::format("loss, {}", kind.name));
  for (size_t i = kRecallDistances.size(); i-- > 0;) {
    const std::span<const RecallTrial> found = std::span(trials).subspan(i * kKinds, kKinds);
    recall.add(fmt::format("{}", kRecallDistances[i]), {});
    for (size_t k = 0; k < kKinds; k++) {
      recall.rows.back().values.push_back(found[k].accuracy);
      answers.curves[k].points.push_back({static_cast<double>(kRecallDistances[i]), found[k].accuracy});
    }
    for (const RecallTrial& trial : found) recall.rows.back().values.push_back(last_loss(trial.losses));
  }
  ExperimentResult result = {{}, {gradients, recall}, {by_distance, answers}};
  const auto change = [&](const char* column) { return gradients.at("512", column) / gradients.at("8", column); };
  const auto share = [&](const char* distance, size_t k) { return 100 * recall.at(distance, kRecallKinds[k].name); };
  result.findings = {
      fmt::format(
          "The gradient of the first token at distance 512 is {:.2g} times that at distance 8 with attention (8 / "
          "512 is {:.2g}), and {:.1e} times in the recurrent network, before training.",
          change("gradient, attention"), 8.0 / 512, change("gradient, recurrent")),
      fmt::format(
          "After training, the first token is recalled at distance 8 and 256 in {:.0f} % and {:.0f} % of the "
          "texts by attention, and by the recurrent network in {:.0f} % and {:.0f} % at the same learning rate, "
          "{:.0f} % and {:.0f} % at {}.",
          share("8", 0), share("256", 0), share("8", 1), share("256", 1), share("8", 2), share("256", 2),
          kRecallKinds[2].rate)};
  result.verdict = {
      "Attention reaches any distance in the same number of steps, and so does its gradient. Through a "
      "recurrent network the gradient vanishes with the distance before training, and at the same learning "
      "rate the network recalls the first token of long texts less.",
      change("gradient, attention") > 1e-3 && change("gradient, recurrent") < 1e-20 &&
          share("256", 0) > share("256", 1)};
  return result;
}

}  // namespace qkv
