// A Transformer language model against n-gram models, by the amount of training text: perplexity of other text of which
// the entropy is known, or of the bytes of a file.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/fail.h"
#include "core/system/threads.h"
#include "io/mapped_file.h"
#include "program/experiments/experiment.h"
#include "program/experiments/ngram_model.h"
#include "program/experiments/small_training.h"

namespace qkv {
namespace {

constexpr int64_t kTextSymbols = 65, kOrders = 5;  // a model reads all but the last symbol of a text
constexpr int64_t kHeldOut = 64;                   // texts to choose a step by, and as many to measure
constexpr std::array<int64_t, 4> kTextCounts = {4096, 1024, 128, 16};  // the longest training first
constexpr int64_t kMostSteps = 1500, kStepsOfSixteen = 250, kBaselineTexts = 16, kStepsBetween = 20;

using Texts = std::vector<std::vector<int32_t>>;

struct Corpus {
  int64_t vocab = 0;
  Texts train, dev, test;
  double entropy = std::numeric_limits<double>::quiet_NaN();  // estimate in nats per symbol; NaN: not known
};

// Returns −log p of all symbols but the first of each text, averaged.
template <class Losses>
double mean_loss(const Texts& texts, Losses&& losses_of) {
  std::vector<double> all;
  for (const std::vector<int32_t>& text : texts) {
    const std::vector<double> losses = losses_of(text);
    all.insert(all.end(), losses.begin() + 1, losses.end());
  }
  return mean_of_numbers(all);
}

Corpus generated_corpus(uint64_t seed) {
  const SymbolSource source({.symbols = 20, .order = 3, .brackets = 6}, seed);
  Random random(seed, Stream::test);
  Corpus corpus = {source.shape().vocab(), {}, {}, {}};
  for (const auto& [texts, count] :
       {std::pair{&corpus.train, kTextCounts.front()}, {&corpus.dev, kHeldOut}, {&corpus.test, kHeldOut}})
    for (int64_t i = 0; i < count; i++) texts->push_back(source.text(kTextSymbols, random));
  corpus.entropy = mean_loss(corpus.test, [&](const std::vector<int32_t>& text) { return source.losses(text); });
  return corpus;
}

// The bytes of a file in texts of equal length: the first for training, those at the end to choose and to measure.
Corpus corpus_of_file(const std::string& path) {
  const MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  const int64_t needed = kTextCounts.back() + 2 * kHeldOut, found = std::ssize(bytes) / kTextSymbols;
  if (found < needed) fail("{}: has {} bytes, expected at least {}", path, bytes.size(), needed * kTextSymbols);
  const auto text_at = [&](int64_t i) {
    std::vector<int32_t> text;
    for (const std::byte byte : bytes.subspan(to_size(i * kTextSymbols), to_size(kTextSymbols)))
      text.push_back(std::to_integer<int32_t>(byte));
    return text;
  };
  Corpus corpus = {256, {}, {}, {}};
  for (int64_t i = 0; i < std::min(found - 2 * kHeldOut, kTextCounts.front()); i++) corpus.train.push_back(text_at(i));
  for (int64_t i = found - 2 * kHeldOut; i < found; i++) (i % 2 == 0 ? corpus.dev : corpus.test).push_back(text_at(i));
  return corpus;
}

double ngram_loss(const NgramModel& model, const Texts& texts) {
  return mean_loss(texts, [&](const std::vector<int32_t>& text) {
    std::vector<double> losses;
    for (size_t t = 0; t < text.size(); t++)
      losses.push_back(-std::log(model.probability(std::span(text).first(t), text[t])));
    return losses;
  });
}

Batch batch_of(const Texts& texts) {
  Batch batch;
  for (const std::vector<int32_t>& text : texts) append_text(batch, text);
  return batch;
}

// Returns the loss on the test texts with the parameters of the step that is best on the dev texts.
double transformer_loss(const Corpus& corpus, const Texts& train, const ExperimentOptions& options) {
  Transformer<float> model(small_language_model(corpus.vocab, 2, 64, 4, kTextSymbols));
  const Batch dev = batch_of(corpus.dev), test = batch_of(corpus.test);
  double best = std::numeric_limits<double>::infinity(), result = best;
  const auto make_batch = [&](int64_t step) {
    Random random(options.seed, Stream::test, static_cast<uint64_t>(step));
    Batch batch;
    for (int64_t i = 0; i < kBaselineTexts; i++) append_text(batch, train[random.below(train.size())]);
    return batch;
  };
  const double growth = std::sqrt(static_cast<double>(train.size()) / 16);  // less text is learned in fewer steps
  const int64_t steps = std::min(scaled(kMostSteps, options.effort), scaled(kStepsOfSixteen, growth * options.effort));
  train_small(model, {steps, 4e-3}, options.seed, make_batch, [&](int64_t step) {
    if (step % kStepsBetween != 0 && step != steps) return;
    const double loss = mean_of_numbers(token_losses(model, dev));
    if (loss < best) best = loss, result = mean_of_numbers(token_losses(model, test));
  });
  return result;
}

struct BaselineTrial {
  int64_t texts = 0;
  std::vector<double> losses;  // of the orders, then of the Transformer
};

BaselineTrial baseline_trial(const Corpus& corpus, int64_t count, const ExperimentOptions& options) {
  const Texts train(corpus.train.begin(), corpus.train.begin() + count);
  BaselineTrial trial = {count, {}};
  for (int64_t order = 1; order <= kOrders; order++)
    trial.losses.push_back(ngram_loss(NgramModel(order, corpus.vocab, train), corpus.test));
  trial.losses.push_back(transformer_loss(corpus, train, options));
  return trial;
}

std::string ngram_name(int64_t order) { return fmt::format("{}-gram", order); }

}  // namespace

ExperimentResult baselines_experiment(const ExperimentOptions& options) {
  const Corpus corpus = options.data.empty() ? generated_corpus(options.seed) : corpus_of_file(options.data);
  std::vector<int64_t> counts;
  for (const int64_t count : kTextCounts)
    if (count <= std::ssize(corpus.train)) counts.push_back(count);
  std::vector<BaselineTrial> trials(counts.size());
  TrainedCount count(options, counts.size());
  parallel_for(std::ssize(counts), [&](int64_t i) {
    trials[to_size(i)] = baseline_trial(corpus, counts[to_size(i)], options);
    count.add();
  });
  std::ranges::reverse(trials);

  ExperimentTable table = {"perplexity", "Perplexity of other text by symbols of training text", "model", {}};
  ExperimentChart chart = {"Perplexity by symbols of training text", "symbols", true};
  for (int64_t k = 0; k <= kOrders; k++) {
    const std::string name = k < kOrders ? ngram_name(k + 1) : "Transformer";
    table.add(name, {});
    chart.curves.push_back({name, {}});
    for (const BaselineTrial& trial : trials) {
      const double symbols = static_cast<double>(trial.texts * kTextSymbols),
                   perplexity = std::exp(trial.losses[to_size(k)]);
      table.rows.back().values.push_back(perplexity);
      chart.curves.back().points.push_back({symbols, perplexity});
    }
  }
  for (const BaselineTrial& trial : trials) table.columns.push_back(fmt::format("{}", trial.texts * kTextSymbols));
  const std::string least = table.columns.front(), most = table.columns.back();
  const auto best_ngram = [&](const std::string& column) {
    int64_t best = 1;
    for (int64_t order = 2; order <= kOrders; order++)
      if (table.at(ngram_name(order), column) < table.at(ngram_name(best), column)) best = order;
    return ngram_name(best);
  };
  const auto compared = [&](const std::string& column) {
    const std::string ngram = best_ngram(column);
    return fmt::format("With {} symbols the best n-gram model ({}) has {:.2f} and the Transformer {:.2f}", column,
                       ngram, table.at(ngram, column), table.at("Transformer", column));
  };
  ExperimentResult result;
  result.findings = {compared(least) + "."};
  if (most != least) result.findings.push_back(compared(most) + ".");
  if (!std::isnan(corpus.entropy)) {
    const double floor = std::exp(corpus.entropy);
    table.add("entropy (estimate)", std::vector<double>(trials.size(), floor));
    chart.curves.push_back(
        {"entropy (estimate)", {{chart.curves[0].points.front().x, floor}, {chart.curves[0].points.back().x, floor}}});
    result.findings.back() +=
        fmt::format(" On average no model is below the perplexity of the source, here about {:.2f}.", floor);
  }
  const auto gain = [&](const std::string& column) {  // of the Transformer
    return table.at(best_ngram(column), column) - table.at("Transformer", column);
  };
  result.verdict = {"With little text n-gram models are better, with much text the Transformer is.",
                    gain(least) < 0 && gain(most) > 0};
  result.tables = {table}, result.charts = {chart};
  return result;
}

}  // namespace qkv
