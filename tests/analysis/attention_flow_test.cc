// Attention flow against the smallest cut of its network, which is found by trying all cuts.
#include "analysis/attention_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/random.h"
#include "core/to_size.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using Capacities = std::vector<std::vector<double>>;  // [from][to]

// Returns the least capacity of the edges out of a set of nodes that has `from` and lacks `to`.
double smallest_cut(const Capacities& capacities, size_t from, size_t to) {
  double smallest = std::numeric_limits<double>::infinity();
  const size_t nodes = capacities.size();
  for (size_t set = 0; set < size_t{1} << nodes; set++) {
    const auto has = [&](size_t node) { return (set >> node & 1) != 0; };
    if (!has(from) || has(to)) continue;
    double cut = 0;
    for (size_t u = 0; u < nodes; u++)
      for (size_t v = 0; v < nodes; v++)
        if (has(u) && !has(v)) cut += capacities[u][v];
    smallest = std::min(smallest, cut);
  }
  return smallest;
}

AttentionKind random_kind(const std::string& name, size_t rows, size_t columns, size_t layers, Random& random) {
  AttentionKind kind;
  kind.name = name;
  kind.causal = name == "decoder";
  kind.rows.assign(rows, "r");
  kind.columns.assign(columns, "c");
  for (size_t l = 0; l < layers; l++) {
    std::vector<AttentionHead> heads(2);
    for (AttentionHead& head : heads)
      for (size_t i = 0; i < rows; i++) {
        std::vector<float> row(columns);
        float sum = 0;
        for (size_t j = 0; j < columns; j++)
          sum += row[j] = kind.causal && j > i ? 0 : static_cast<float>(random.uniform()) + 1e-3F;
        for (const float weight : row) head.weights.push_back(weight / sum);
      }
    kind.layers.push_back(std::move(heads));
  }
  return kind;
}

float mean_weight(const AttentionKind& kind, size_t layer, size_t i, size_t j) {
  const size_t place = i * kind.columns.size() + j;
  return (kind.layers[layer][0].weights[place] + kind.layers[layer][1].weights[place]) / 2;
}

float found_weight(const AttentionKind& kind, size_t layer, size_t i, size_t j) {
  return kind.layers[layer].front().weights[i * kind.columns.size() + j];
}

// Adds the edges of self-attention: node first + l * tokens + i is token i after layer l.
void add_self_attention(Capacities& capacities, const AttentionKind& kind, size_t first, double factor) {
  const size_t tokens = kind.rows.size();
  for (size_t l = 0; l < kind.layers.size(); l++)
    for (size_t i = 0; i < tokens; i++)
      for (size_t j = 0; j < tokens; j++)
        capacities[first + (l + 1) * tokens + i][first + l * tokens + j] =
            factor * (static_cast<double>(mean_weight(kind, l, i, j)) + (i == j ? 1 : 0)) / 2;
}

constexpr double kTolerance = 1e-6;  // of the float32 weights of the map

TEST(AttentionFlow, EqualsTheSmallestCut) {
  Random random(3, Stream::sampling);
  constexpr size_t kTokens = 3, kLayers = 3;
  for (const std::string name : {"encoder", "decoder"}) {
    const AttentionKind kind = random_kind(name, kTokens, kTokens, kLayers, random);
    Capacities capacities((kLayers + 1) * kTokens, std::vector<double>((kLayers + 1) * kTokens));
    add_self_attention(capacities, kind, 0, 1);
    const AttentionMap flow = attention_flow({"", "", {kind}});
    ASSERT_EQ(flow.kinds.size(), 1u);
    for (size_t l = 1; l <= kLayers; l++)
      for (size_t i = 0; i < kTokens; i++) {
        std::vector<double> cuts;
        double sum = 0;
        for (size_t j = 0; j < kTokens; j++) sum += cuts.emplace_back(smallest_cut(capacities, l * kTokens + i, j));
        for (size_t j = 0; j < kTokens; j++)
          EXPECT_NEAR(found_weight(flow.kinds[0], l - 1, i, j), cuts[j] / sum, kTolerance) << name << l << i << j;
      }
  }
}

TEST(AttentionFlow, OfADecoderComesFromBothSides) {
  Random random(4, Stream::sampling);
  constexpr size_t kSource = 2, kTarget = 3, kLayers = 2, kFirst = (kLayers + 1) * kSource;
  const AttentionKind encoder = random_kind("encoder", kSource, kSource, kLayers, random);
  const AttentionKind decoder = random_kind("decoder", kTarget, kTarget, kLayers, random);
  const AttentionKind cross = random_kind("cross", kTarget, kSource, kLayers, random);
  Capacities capacities(kFirst + (kLayers + 1) * kTarget, std::vector<double>(kFirst + (kLayers + 1) * kTarget));
  add_self_attention(capacities, encoder, 0, 1);
  add_self_attention(capacities, decoder, kFirst, 0.5);
  for (size_t l = 0; l < kLayers; l++)
    for (size_t i = 0; i < kTarget; i++)
      for (size_t j = 0; j < kSource; j++)
        capacities[kFirst + (l + 1) * kTarget + i][kLayers * kSource + j] =
            static_cast<double>(mean_weight(cross, l, i, j)) / 2;
  const AttentionMap flow = attention_flow({"", "", {encoder, decoder, cross}});
  for (size_t l = 1; l <= kLayers; l++)
    for (size_t i = 0; i < kTarget; i++) {
      const size_t from = kFirst + l * kTarget + i;
      std::vector<double> target, source;
      double sum = 0;
      for (size_t j = 0; j < kTarget; j++) sum += target.emplace_back(smallest_cut(capacities, from, kFirst + j));
      for (size_t j = 0; j < kSource; j++) sum += source.emplace_back(smallest_cut(capacities, from, j));
      for (size_t j = 0; j < kTarget; j++)
        EXPECT_NEAR(found_weight(flow.kinds[1], l - 1, i, j), target[j] / sum, kTolerance) << l << i << j;
      for (size_t j = 0; j < kSource; j++)
        EXPECT_NEAR(found_weight(flow.kinds[2], l - 1, i, j), source[j] / sum, kTolerance) << l << i << j;
    }
}

TEST(AttentionFlow, OfTooManyPairsIsRefused) {
  Random random(5, Stream::sampling);
  const AttentionKind kind = random_kind("encoder", 160, 160, 2, random);
  EXPECT_EQ(testing::error_if_any([&] {
              attention_flow({"", "", {kind}});
            }),
            "flow: 51200 pairs of a token and an input over all layers, more than 50000: shorten the text");
}

}  // namespace
}  // namespace qkv
