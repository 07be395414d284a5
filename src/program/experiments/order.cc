// Permutation equivariance: f(Π X) = Π f(X) for attention without positions and masks, in float64; and two sentences
// of the same words in another order.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>

#include "ops/rows.h"
#include "program/experiments/experiment.h"
#include "program/experiments/random_vectors.h"
#include "qkv/layers.h"

namespace qkv {
namespace {

constexpr int64_t kOrderWidth = 16, kOrderTokens = 12, kOrderTrials = 20;

using Numbers = std::vector<double>;  // rows of kOrderWidth
using Map = std::function<Numbers(const Numbers&)>;

Matrix<const double> rows_of(const Numbers& x) { return {x.data(), std::ssize(x) / kOrderWidth, kOrderWidth}; }

Numbers copy_of(Matrix<const double> y) { return {y.data, y.data + y.rows * y.cols}; }

// Row i of the result is row order[i] of x.
Numbers reordered(const Numbers& x, const std::vector<int32_t>& order) {
  Numbers y(x.size());
  gather_rows<double>(rows_of(x), order, {y.data(), std::ssize(order), kOrderWidth});
  return y;
}

// |a − b| / |b|
double relative_distance(const Numbers& a, const Numbers& b) {
  Numbers difference(a.size());
  std::ranges::transform(a, b, difference.begin(), std::minus<>());
  return length_of(difference) / length_of(b);
}

ModelConfig order_config(Positions positions) {
  ModelConfig config = layers::sizes(kOrderWidth, 2, 2 * kOrderWidth, 2);
  config.positions = positions;
  config.max_length = kOrderTokens;
  return config;
}

// Two layers with random weights. Sinusoids are added to the input.
Map stack_of(Positions positions, bool causal, uint64_t seed) {
  const auto stack = std::make_shared<layers::Encoder<double>>(order_config(positions), causal);
  stack->initialize(seed);
  return [=](const Numbers& x) {
    Numbers y = x;
    if (positions == Positions::interleaved) {
      Numbers P(x.size());
      layers::positional_encoding<double>({P.data(), rows_of(x).rows, kOrderWidth}, positions);
      std::ranges::transform(y, P, y.begin(), std::plus<>());
    }
    return copy_of(stack->forward({rows_of(y)}));
  };
}

struct OrderKind {
  const char* name;
  Positions positions;
  bool causal;
};
constexpr OrderKind kOrderKinds[] = {{"encoder, no positions", Positions::none, false},
                                     {"encoder, sinusoidal", Positions::interleaved, false},
                                     {"encoder, rotary", Positions::rotary, false},
                                     {"encoder, ALiBi", Positions::alibi, false},
                                     {"decoder, no positions", Positions::none, true}};

// The least and the largest of several relative differences.
struct Differences {
  double least = 1e300, most = 0;

  void take(double value) { least = std::min(least, value), most = std::max(most, value); }
};

// Differences between f(Π x) and Π f(x), or f(x) if f should be invariant, for random Π and x.
Differences differences_of(const Map& f, bool invariant, Random& random) {
  Differences found;
  for (int64_t trial = 0; trial < kOrderTrials; trial++) {
    const Numbers x = normal_numbers<double>(kOrderTokens * kOrderWidth, random);
    const std::vector<int32_t> order = random_order(kOrderTokens, random);
    const Numbers y = f(x);
    found.take(relative_distance(f(reordered(x, order)), invariant ? y : reordered(y, order)));
  }
  return found;
}

ExperimentTable permutations(uint64_t seed) {
  Random random(seed, Stream::test, 0);
  ExperimentTable table = {"permutations",
                           fmt::format("Relative difference |f(ΠX) − Πf(X)| / |f(X)| of {} random permutations of {} "
                                       "tokens, float64",
                                       kOrderTrials, kOrderTokens),
                           "f",
                           {"least", "largest"}};
  for (const OrderKind& kind : kOrderKinds) {
    const Differences found = differences_of(stack_of(kind.positions, kind.causal, seed), false, random);
    table.add(kind.name, {found.least, found.most});
  }
  layers::MultiHeadAttention<double> attention(order_config(Positions::none));
  attention.initialize(seed);
  const Numbers other = normal_numbers<double>(kOrderTokens * kOrderWidth, random);
  const Map of_queries = [&](const Numbers& x) { return copy_of(attention.forward({rows_of(x), rows_of(other)})); };
  const Map of_memory = [&](const Numbers& x) { return copy_of(attention.forward({rows_of(other), rows_of(x)})); };
  for (const auto& [name, map, invariant] : {std::tuple{"cross-attention, queries", of_queries, false},
                                             {"cross-attention, memory (f(ΠX) = f(X))", of_memory, true}}) {
    const Differences found = differences_of(map, invariant, random);
    table.add(name, {found.least, found.most});
  }
  return table;
}

// The difference after 1, 2, … random swaps of two neighbours.
ExperimentChart swaps(uint64_t seed) {
  constexpr int64_t kSwaps = 24;
  ExperimentChart chart = {"Difference |f(ΠX) − Πf(X)| / |f(X)|", "swaps of neighbours", false, true};
  for (const OrderKind& kind : kOrderKinds) {
    Random random(seed, Stream::test, 1);
    const Map f = stack_of(kind.positions, kind.causal, seed);
    const Numbers x = normal_numbers<double>(kOrderTokens * kOrderWidth, random), y = f(x);
    std::vector<int32_t> order(kOrderTokens);
    std::iota(order.begin(), order.end(), 0);
    chart.curves.push_back({kind.name, {}});
    for (int64_t swap = 1; swap <= kSwaps; swap++) {
      const size_t i = random.below(kOrderTokens - 1);
      std::swap(order[i], order[i + 1]);
      const double difference = relative_distance(f(reordered(x, order)), reordered(y, order));
      chart.curves.back().points.push_back({static_cast<double>(swap), difference});
    }
  }
  return chart;
}

using Sentence = std::vector<std::string>;
const Sentence kBad = {"the", "food", "was", "bad", ",", "not", "good", "at", "all"};
const Sentence kGood = {"the", "food", "was", "good", ",", "not", "bad", "at", "all"};

Numbers vectors_of(const Sentence& sentence, const std::map<std::string, Numbers>& embedding) {
  Numbers x;
  for (const std::string& word : sentence) x.insert(x.end(), embedding.at(word).begin(), embedding.at(word).end());
  return x;
}

Numbers mean_of(const Numbers& y) {
  const Matrix<const double> rows = rows_of(y);
  Numbers mean(kOrderWidth);
  for (int64_t n = 0; n < rows.rows; n++)
    for (int64_t i = 0; i < kOrderWidth; i++) mean[to_size(i)] += rows(n, i) / static_cast<double>(rows.rows);
  return mean;
}

Numbers row_of_word(const Numbers& y, const Sentence& sentence, const std::string& word) {
  const auto n = std::ranges::find(sentence, word) - sentence.begin();
  return {y.begin() + n * kOrderWidth, y.begin() + (n + 1) * kOrderWidth};
}

ExperimentTable sentences(uint64_t seed) {
  Random random(seed, Stream::test, 2);
  std::map<std::string, Numbers> embedding;
  for (const std::string& word : kBad) embedding[word] = normal_numbers<double>(kOrderWidth, random);
  ExperimentTable table = {"sentences",
                           "\"The food was bad, not good at all\" and \"The food was good, not bad at all\": relative "
                           "difference of the vectors",
                           "vector",
                           {}};
  for (const std::string& word : kBad) table.add(word, {});
  table.add("mean of the sentence", {});
  for (const OrderKind& kind : kOrderKinds) {
    table.columns.push_back(kind.name);
    const Map f = stack_of(kind.positions, kind.causal, seed);
    const Numbers bad = f(vectors_of(kBad, embedding)), good = f(vectors_of(kGood, embedding));
    for (ExperimentRow& row : table.rows)
      row.values.push_back(&row == &table.rows.back() ? relative_distance(mean_of(bad), mean_of(good))
                                                      : relative_distance(row_of_word(bad, kBad, row.name),
                                                                          row_of_word(good, kGood, row.name)));
  }
  return table;
}

}  // namespace

ExperimentResult order_experiment(const ExperimentOptions& options) {
  ExperimentResult result = {{}, {permutations(options.seed), sentences(options.seed)}, {swaps(options.seed)}};
  const ExperimentTable &orders = result.tables[0], &words = result.tables[1];
  const auto mean_in = [&](const OrderKind& kind) { return words.at("mean of the sentence", kind.name); };
  result.findings = {
      fmt::format("Without positions an encoder commutes with every permutation, up to rounding ({:.1e}); with "
                  "positions it does not (at least {:.2f}), and neither does a decoder, whose mask knows the order (at "
                  "least {:.2f}).",
                  orders.at(kOrderKinds[0].name, "largest"),
                  std::min({orders.at(kOrderKinds[1].name, "least"), orders.at(kOrderKinds[2].name, "least"),
                            orders.at(kOrderKinds[3].name, "least")}),
                  orders.at(kOrderKinds[4].name, "least")),
      fmt::format("The two sentences have the same words: without positions their mean vectors agree up to rounding "
                  "({:.1e}), with sinusoidal positions they differ by {:.0f} %.",
                  mean_in(kOrderKinds[0]), 100 * mean_in(kOrderKinds[1]))};
  const auto sees_order = [&](const OrderKind& kind) { return orders.at(kind.name, "least") > 1e-3; };
  result.verdict = {"Attention alone does not see the order of tokens. Positions or a causal mask show it.",
                    orders.at(kOrderKinds[0].name, "largest") < 1e-12 && mean_in(kOrderKinds[0]) < 1e-12 &&
                        std::all_of(std::begin(kOrderKinds) + 1, std::end(kOrderKinds), sees_order)};
  return result;
}

}  // namespace qkv
