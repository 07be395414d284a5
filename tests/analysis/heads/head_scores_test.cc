// Scores of heads: against plain loops over the definition, on random attention, and heads that are set by hand.
#include "analysis/heads/head_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "analysis/heads/collect_scores.h"
#include "qkv/system.h"
#include "tests/analysis/heads/head_cases.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::token;

size_t score_number(std::string_view name) {
  const auto scores = token_scores();
  return static_cast<size_t>(std::ranges::find(scores, name, &TokenScore::name) - scores.begin());
}

const ShapeScore& shape_of(std::string_view name) {
  return *std::ranges::find(shape_scores(), name, &ShapeScore::name);
}

// Random distributions over the keys that each row sees.
class Weights {
 public:
  explicit Weights(const AttentionAxes& axes) : columns_(std::ssize(axes.columns().ids)) {
    Random random(7, Stream::test);
    for (int64_t i = 0; i < std::ssize(axes.rows().ids); i++) {
      double sum = 0;
      std::vector<double> row(to_size(columns_));
      for (int64_t j = 0; j < axes.seen(i); j++) sum += row[to_size(j)] = random.uniform();
      for (const double w : row) values_.push_back(static_cast<float>(w / sum));
    }
  }
  Matrix<const float> matrix() const { return {values_.data(), std::ssize(values_) / columns_, columns_}; }

 private:
  int64_t columns_;
  std::vector<float> values_;
};

HeadText example() {
  HeadText text;
  text.source = testing::side_of({5, 3, 7, 5, 2});
  text.target = testing::side_of({1, 4, 5, 4, 5, 3, 4});
  text.labels = {4, 5, 4, 5, 3, 4, 2};
  for (const int32_t id : text.labels) text.label_tokens.push_back(token(id));
  return text;
}

// A key of a row by the definition of a score.
using IsKey = std::function<bool(const AttentionAxes&, size_t i, size_t j)>;

const std::map<std::string, IsKey> kDefinitions = {
    {"previous", [](const AttentionAxes&, size_t i, size_t j) { return j + 1 == i; }},
    {"next", [](const AttentionAxes&, size_t i, size_t j) { return j == i + 1; }},
    {"same", [](const AttentionAxes&, size_t i, size_t j) { return i == j; }},
    {"first", [](const AttentionAxes& a, size_t i, size_t j) { return j == 0 && (i > 0 || !a.is_self()); }},
    {"special", [](const AttentionAxes& a, size_t, size_t j) { return a.columns().ids[j] < 3; }},
    {"punctuation", [](const AttentionAxes& a, size_t, size_t j) { return a.columns().ids[j] == 3; }},
    {"repeated",
     [](const AttentionAxes& a, size_t i, size_t j) { return i != j && a.rows().ids[i] == a.columns().ids[j]; }},
    {"induction", [](const AttentionAxes& a, size_t i,
                     size_t j) { return 1 <= j && j <= i && a.columns().ids[j - 1] == a.rows().ids[i]; }},
    {"copying", [](const AttentionAxes& a, size_t i,
                   size_t j) { return a.text.labels[i] >= 3 && a.columns().ids[j] == a.text.labels[i]; }},
    {"recent", [](const AttentionAxes&, size_t i, size_t j) { return j <= i && j + 3 > i; }}};

TEST(HeadScores, TokenScoresAreMeansOfTheWeightsOnTheirKeys) {
  const HeadText text = example();
  ASSERT_EQ(kDefinitions.size(), token_scores().size());
  int64_t compared = 0;
  for (const RunKind kind : {RunKind::translator, RunKind::recommender})
    for (const AttentionPart part : {AttentionPart::encoder, AttentionPart::decoder, AttentionPart::cross}) {
      const AttentionAxes axes{part, text};
      const Weights weights(axes);
      const TokenKeys keys(axes, kind);
      for (size_t s = 0; s < token_scores().size(); s++) {
        if (!token_scores()[s].applies(part, kind)) continue;
        const IsKey& is_key = kDefinitions.at(std::string(token_scores()[s].name));
        double sum = 0, uniform = 0;
        int64_t rows = 0;
        for (int64_t i = 0; i < std::ssize(axes.rows().ids); i++) {
          double of_row = 0, count = 0;
          for (int64_t j = 0; j < axes.seen(i); j++)
            if (is_key(axes, to_size(i), to_size(j))) of_row += static_cast<double>(weights.matrix()(i, j)), count++;
          sum += of_row, uniform += count / static_cast<double>(axes.seen(i)), rows += count > 0;
        }
        const RowSum found = keys.of(s, weights.matrix());
        EXPECT_EQ(found.rows, rows) << token_scores()[s].name;
        EXPECT_DOUBLE_EQ(found.sum, sum) << token_scores()[s].name;
        EXPECT_DOUBLE_EQ(keys.uniform(s).sum, uniform) << token_scores()[s].name;
        compared += rows > 0;
      }
    }
  EXPECT_GE(compared, 30);
}

TEST(HeadScores, ScoresOfHandMadeAttentionAreThoseOfTheirHead) {
  const HeadText text = example();
  const AttentionAxes axes{AttentionPart::decoder, text};
  const TokenKeys keys(axes, RunKind::language_model);
  std::vector<float> weights(7 * 7);
  const Matrix<float> A(weights.data(), 7, 7);
  A(0, 0) = 1;
  for (int64_t i = 1; i < 7; i++) A(i, i - 1) = 1;
  EXPECT_EQ(keys.of(score_number("previous"), A).mean(), 1);
  EXPECT_EQ(keys.of(score_number("same"), A).mean(), 1 / 7.0);
  EXPECT_EQ(keys.of(score_number("first"), A).mean(), 1 / 6.0);
  // Rows 3, 4 and 6 have an earlier occurrence, after which come tokens 2, 3, and 2 and 4.
  EXPECT_EQ(keys.of(score_number("induction"), A).rows, 3);
  EXPECT_EQ(keys.of(score_number("induction"), A).sum, 2);
  EXPECT_EQ(shape_sum(shape_of("distance"), axes, A).mean(), 6 / 7.0);
  EXPECT_EQ(shape_sum(shape_of("spread"), axes, A).mean(), 0);
  EXPECT_EQ(shape_sum(shape_of("entropy"), axes, A).mean(), 0);
}

TEST(HeadScores, ShapesOfUniformAttentionAreThoseOfTheUniformDistribution) {
  const HeadText text = example();
  const AttentionAxes axes{AttentionPart::encoder, text};
  const double S = 5;
  // float32 weights of 1/5 are off by at most half an ulp, 2⁻²⁶; five of them are multiplied by numbers up to 16.
  constexpr double kTolerance = 1e-6;
  EXPECT_NEAR(uniform_shape_sum(shape_of("entropy"), axes).mean(), std::log(S), kTolerance);
  EXPECT_NEAR(uniform_shape_sum(shape_of("spread"), axes).mean(), std::sqrt((S * S - 1) / 12), kTolerance);
  EXPECT_NEAR(uniform_shape_sum(shape_of("distance"), axes).mean(), (S * S - 1) / (3 * S), kTolerance);
}

// Returns the means of a score of all heads.
std::vector<double> means_of(const CollectedScores& all, std::string_view name) {
  std::vector<double> means;
  for (const HeadSums& head : all.heads) means.push_back(head.token_scores[score_number(name)].mean());
  return means;
}

TEST(HeadScores, HeadsThatAreSetByHandHaveTheirScores) {
  HeadTexts texts = testing::induction_model(9, 16);
  for (const std::vector<int32_t>& ids :
       {std::vector<int32_t>{8, 4, 5, 6, 4, 5, 3, 4}, std::vector<int32_t>{7, 3, 4, 3, 5, 6, 5, 3, 4}}) {
    HeadText text;
    text.target = testing::side_of(ids);
    text.labels.assign(ids.begin() + 1, ids.end());
    text.labels.push_back(2);
    texts.texts.push_back(text);
  }
  testing::SpoiledArena arena;
  const CollectedScores all =
      collect_scores(texts, testing::one_batch(texts), arena, WordAgreements(texts, {}, {}), false);
  ASSERT_EQ(all.places.size(), 4u);
  EXPECT_TRUE(all.heads[0].of_texts.empty());  // not requested
  const std::vector<double> previous = means_of(all, "previous"), induction = means_of(all, "induction");
  const double uniform = all.token_uniform[to_size(AttentionPart::decoder)][score_number("previous")].mean();
  EXPECT_GT(previous[0], 0.999);
  EXPECT_LT(induction[0], 0.5);
  EXPECT_NEAR(previous[1], uniform, 1e-6);
  EXPECT_GT(induction[2], 0.999);
  EXPECT_LT(previous[2], 0.8);
  EXPECT_NEAR(previous[3], uniform, 1e-6);
}

void expect_near(const CollectedScores& a, const CollectedScores& b, double tolerance) {
  for (size_t p = 0; p < a.heads.size(); p++)
    for (size_t s = 0; s < token_scores().size(); s++) {
      const RowSum &x = a.heads[p].token_scores[s], &y = b.heads[p].token_scores[s];
      EXPECT_EQ(x.rows, y.rows);
      EXPECT_NEAR(x.mean(), y.mean(), tolerance);
      for (size_t t = 0; t < a.heads[p].of_texts[s].size(); t++)
        EXPECT_NEAR(a.heads[p].of_texts[s][t], b.heads[p].of_texts[s][t], tolerance);
    }
}

TEST(HeadScores, CollectedScoresDependNeitherOnThreadsNorOnBatches) {
  for (const auto& [config, kind] : testing::head_cases()) {
    const HeadTexts texts = testing::random_head_texts(config, kind, 6);
    testing::SpoiledArena arena;
    const WordAgreements none(texts, {}, {});
    const std::vector<std::vector<size_t>> one = testing::one_batch(texts), two = {{4, 1, 2}, {3, 0, 5}};
    const CollectedScores wanted = collect_scores(texts, one, arena, none, true);
    expect_near(wanted, collect_scores(texts, two, arena, none, true), 1e-5);  // sums of products in another order
    const int threads_before = threads();
    set_threads(3);
    expect_near(wanted, collect_scores(texts, one, arena, none, true), 0);
    set_threads(threads_before);
  }
}

}  // namespace
}  // namespace qkv
