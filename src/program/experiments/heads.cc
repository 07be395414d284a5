// One attention head of full width against several narrow ones with as many parameters, on a task that needs several
// patterns at the same time: each token has a name and a value, and the model predicts four values, each found in
// another way. The model is one attention layer and a linear layer that reads its output.
#include <fmt/format.h>

#include <array>

#include "core/system/threads.h"
#include "model/layers/attention.h"
#include "model/layers/embedding.h"
#include "model/transformer.h"
#include "ops/cross_entropy.h"
#include "ops/rows.h"
#include "program/experiments/experiment.h"
#include "program/experiments/random_vectors.h"
#include "program/experiments/small_training.h"

namespace qkv {
namespace {

constexpr int64_t kNames = 8, kValues = 8, kTokenKinds = kNames * kValues;
constexpr int64_t kHeadTexts = 32, kHeadLength = 2 * kNames, kHeadWidth = 64, kHeadSteps = 800, kHeadSeeds = 3;
constexpr std::array<int64_t, 4> kHeadCounts = {1, 2, 4, 8};
constexpr const char* kPatterns[] = {"previous token", "two before", "same name", "first token"};
constexpr int64_t kPatternCount = std::ssize(kPatterns);

// Sequences in which each name occurs once in the first half and once in the second. The last kNames tokens of each
// have labels: [kPatternCount] values.
struct NamedValues {
  Packed text;
  std::vector<int32_t> rows;    // the tokens with labels
  std::vector<int32_t> labels;  // [rows, kPatternCount]
};

NamedValues named_values(int64_t texts, uint64_t seed, uint64_t index) {
  Random random(seed, Stream::test, index);
  NamedValues batch;
  for (int64_t t = 0; t < texts; t++) {
    std::vector<int32_t> names = random_order(kNames, random);
    const std::vector<int32_t> again = random_order(kNames, random);
    names.insert(names.end(), again.begin(), again.end());
    std::vector<int32_t> values(to_size(kHeadLength)), ids;
    for (int32_t& value : values) value = static_cast<int32_t>(random.below(kValues));
    for (size_t i = 0; i < values.size(); i++) ids.push_back(names[i] * static_cast<int32_t>(kValues) + values[i]);
    for (size_t i = to_size(kNames); i < values.size(); i++) {
      const auto same = std::ranges::find(names, names[i]) - names.begin();
      batch.rows.push_back(static_cast<int32_t>(batch.text.tokens()) + static_cast<int32_t>(i));
      for (const int32_t value : {values[i - 1], values[i - 2], values[to_size(same)], values[0]})
        batch.labels.push_back(value);
    }
    batch.text.append(ids);
  }
  return batch;
}

class HeadsModel {
 public:
  explicit HeadsModel(int64_t heads)
      : config_(small_language_model(kTokenKinds, 1, kHeadWidth, heads, kHeadLength)),
        positions_(config_),
        table_(list_.add("embedding.weight", {kTokenKinds, kHeadWidth},
                         Init::gaussian(1 / std::sqrt(static_cast<double>(kHeadWidth))))),
        embedding_(list_, "decoder", table_, config_, false, {"gaps", 0}, sites_, positions_),
        attention_(list_, "attention", config_, AttentionScope::global, sites_),
        readout_(list_, {{"readout", kPatternCount * kValues}}, kHeadWidth, true) {
    list_.allocate();
  }

  ParameterList<float>& parameters() { return list_; }

  // Adds the gradient of the sum of all losses, and returns that sum.
  Loss loss_and_gradient(const NamedValues& batch, Objective, Context& c) const {
    const Arena::Scope scope(c.arena);
    Saved s;
    const Matrix<float> logits = forward(batch, c, s);
    const int64_t count = std::ssize(batch.labels);
    float* loss = c.arena.take<float>(count);
    float* nll = c.arena.take<float>(count);
    cross_entropy_with_gradient<float>({logits.data, count, kValues}, batch.labels, 0, 1, loss, nll);
    backward(batch, logits, c, s);
    const double sum = sum_losses<float>(nll, count, count);
    return {sum, sum, count};
  }

  // Returns the share of right predictions of each pattern.
  std::array<double, kPatternCount> accuracy(const NamedValues& batch) const {
    Arena arena;
    Context c{arena};
    Saved s;
    const Matrix<float> logits = forward(batch, c, s);
    std::array<double, kPatternCount> right = {};
    for (size_t i = 0; i < batch.labels.size(); i++) {
      const float* row = logits.data + static_cast<int64_t>(i) * kValues;
      const bool is_right = std::max_element(row, row + kValues) - row == batch.labels[i];
      right[i % kPatternCount] += is_right ? 1.0 / static_cast<double>(batch.rows.size()) : 0;
    }
    return right;
  }

 private:
  struct Saved {
    Embedding<float>::Saved embedding;
    MultiHeadAttention<float>::Saved attention;
    Matrix<float> y, read;  // [N, d], and its rows with labels
  };

  // Returns the logits: [rows, kPatternCount · kValues].
  Matrix<float> forward(const NamedValues& batch, Context& c, Saved& s) const {
    const Packed& text = batch.text;
    const Matrix<float> x = embedding_.forward(text.ids, text.positions, text.gaps, c, s.embedding);
    s.y = attention_.forward(x, x, sequences_of(text, text), Causal::top_left, c, s.attention);
    s.read = c.arena.matrix<float>(std::ssize(batch.rows), kHeadWidth);
    gather_rows<float>(s.y, batch.rows, s.read);
    return readout_.forward(s.read, c);
  }

  void backward(const NamedValues& batch, Matrix<float> dlogits, Context& c, const Saved& s) const {
    const Packed& text = batch.text;
    const Matrix<float> dread = c.arena.matrix<float>(s.read.rows, kHeadWidth),
                        dy = zeros<float>(c.arena, s.y.rows, kHeadWidth);
    readout_.backward(s.read, dlogits, dread, c);
    scatter_rows<float>(dread, batch.rows, dy);
    attention_.backward(dy, dy, false, {}, sequences_of(text, text), Causal::top_left, c, s.attention);
    embedding_.backward(dy, text.ids, text.positions, text.gaps, c, s.embedding);
  }

  ModelConfig config_;
  PositionTables<float> positions_;
  ParameterList<float> list_;
  DropoutSites sites_;
  const Parameter<float>* table_;
  Embedding<float> embedding_;
  MultiHeadAttention<float> attention_;
  Linear<float> readout_;
};

struct HeadsTrial {
  std::vector<double> losses;
  std::array<double, kPatternCount> accuracy = {};
  int64_t parameters = 0;
};

HeadsTrial train_heads(int64_t heads, uint64_t seed, double effort) {
  HeadsModel model(heads);
  HeadsTrial trial;
  trial.losses = train_small(model, {scaled(kHeadSteps, effort), 5e-3}, seed,
                             [&](int64_t step) { return named_values(kHeadTexts, seed, static_cast<uint64_t>(step)); });
  trial.accuracy = model.accuracy(named_values(scaled(256, effort), seed, 1 << 20));
  trial.parameters = model.parameters().size();
  return trial;
}

// The mean over the seeds, and the least and the largest.
struct HeadsSummary {
  double loss = 0, least = 1e300, largest = 0;
  std::array<double, kPatternCount> accuracy = {};
};

HeadsSummary summary_of(std::span<const HeadsTrial> trials) {
  HeadsSummary summary;
  for (const HeadsTrial& trial : trials) {
    const double loss = last_loss(trial.losses), share = 1 / static_cast<double>(trials.size());
    summary.loss += share * loss;
    summary.least = std::min(summary.least, loss), summary.largest = std::max(summary.largest, loss);
    for (size_t i = 0; i < trial.accuracy.size(); i++) summary.accuracy[i] += share * trial.accuracy[i];
  }
  return summary;
}

}  // namespace

ExperimentResult heads_experiment(const ExperimentOptions& options) {
  std::vector<HeadsTrial> trials(kHeadCounts.size() * kHeadSeeds);
  TrainedCount count(options, trials.size());
  parallel_for(std::ssize(trials), [&](int64_t i) {
    trials[to_size(i)] =
        train_heads(kHeadCounts[to_size(i / kHeadSeeds)], options.seed + to_size(i % kHeadSeeds), options.effort);
    count.add();
  });
  ExperimentTable table = {
      "heads",
      fmt::format("An attention layer of width {} with {} parameters, mean of {} seeds: mean training loss of the last "
                  "quarter of {} steps, and share of right values found by each pattern (chance {})",
                  kHeadWidth, trials[0].parameters, kHeadSeeds, trials[0].losses.size(), 1.0 / kValues),
      "heads",
      {"parameters", "loss", "least", "largest"}};
  table.columns.insert(table.columns.end(), std::begin(kPatterns), std::end(kPatterns));
  ExperimentChart chart = {fmt::format("Loss, mean of {} seeds", kHeadSeeds), "steps"};
  for (size_t i = 0; i < kHeadCounts.size(); i++) {
    const std::span<const HeadsTrial> own = std::span(trials).subspan(i * kHeadSeeds, kHeadSeeds);
    const HeadsSummary summary = summary_of(own);
    table.add(fmt::format("{}", kHeadCounts[i]),
              {static_cast<double>(own[0].parameters), summary.loss, summary.least, summary.largest});
    table.rows.back().values.insert(table.rows.back().values.end(), summary.accuracy.begin(), summary.accuracy.end());
  }
  for (size_t i = 0; i < kHeadCounts.size(); i++) {
    chart.curves.push_back({fmt::format("{} head{}", kHeadCounts[i], kHeadCounts[i] == 1 ? "" : "s"), {}});
    const size_t steps = trials[0].losses.size();
    for (size_t step = 0; step < steps; step++) {
      double sum = 0;
      for (size_t seed = 0; seed < kHeadSeeds; seed++) sum += trials[i * kHeadSeeds + seed].losses[step];
      chart.curves.back().points.push_back({static_cast<double>(step + 1), sum / kHeadSeeds});
    }
  }
  ExperimentResult result = {{}, {table}, {chart}};
  const auto mean_accuracy = [&](const char* heads) {
    double sum = 0;
    for (const char* pattern : kPatterns) sum += table.at(heads, pattern);
    return sum / kPatternCount;
  };
  result.findings = {
      fmt::format(
          "Each of the four values is found by a pattern of its own, and one head has one row of weights for all "
          "of them. Right values with one head: {:.0f} %; two: {:.0f} %; four: {:.0f} %; eight: {:.0f} %, with "
          "the same number of parameters and steps.",
          100 * mean_accuracy("1"), 100 * mean_accuracy("2"), 100 * mean_accuracy("4"), 100 * mean_accuracy("8")),
      fmt::format(
          "With eight heads, {:.0f} % (previous token) and {:.0f} % (two before) of the values are right that a "
          "convolution could find, a fixed number of tokens back.",
          100 * table.at("8", kPatterns[0]), 100 * table.at("8", kPatterns[1]))};
  result.verdict = {"Several heads find values in several places at once; one head of the same size does not.",
                    table.at("8", "largest") < 0.5 * table.at("1", "least")};
  return result;
}

}  // namespace qkv
