// Correlations and errors of numbers against figures of SciPy 1.17, and by hand.
#include "eval/number_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using Numbers = std::vector<double>;

const Numbers kScores = {5.0, 4.75, 5.0, 2.4, 2.75, 2.615, 0.0, 2.4};
const Numbers kSimilarities = {0.9, 0.95, 0.7, 0.4, 0.4, 0.4, -0.2, 0.8};

// Each sum has eight terms: about 20 roundings of numbers of about the result's size.
constexpr double kRoundings = 20 * std::numeric_limits<double>::epsilon();

TEST(Correlations, EqualThoseOfSciPy) {
  EXPECT_NEAR(spearman(kScores, kSimilarities), 0.6543708577803532, kRoundings);
  EXPECT_NEAR(pearson(kScores, kSimilarities), 0.8744511230297651, kRoundings);
}

TEST(Correlations, AreOneForTheSameOrderAndMinusOneForTheOpposite) {
  const Numbers a = {1, 2, 3, 10}, cubes = {1, 8, 27, 1000}, descending = {-1, -2, -3, -10};
  EXPECT_DOUBLE_EQ(spearman(a, cubes), 1);
  EXPECT_LT(pearson(a, cubes), 1 - 1e-3);
  EXPECT_DOUBLE_EQ(pearson(a, descending), -1);
  EXPECT_DOUBLE_EQ(spearman(a, descending), -1);
  EXPECT_DOUBLE_EQ(spearman(Numbers{1, 1, 2}, Numbers{1, 2, 2}), 0.5);  // ranks 1.5, 1.5, 3 and 1, 2.5, 2.5
}

TEST(Correlations, AreZeroWhereTheyAreNotDefined) {
  for (const auto correlation : {pearson, spearman}) {
    EXPECT_EQ(correlation({}, {}), 0);
    EXPECT_EQ(correlation(Numbers{1}, Numbers{2}), 0);
    EXPECT_EQ(correlation(Numbers{0.1, 0.1, 0.1}, Numbers{1, 2, 3}), 0);
    EXPECT_EQ(correlation(Numbers{1, 2, 3}, Numbers{0.1, 0.1, 0.1}), 0);
  }
}

TEST(Correlations, OfNumbersThatAreNotFiniteAreNotNumbers) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(spearman(Numbers{1, nan, 3}, Numbers{1, 2, 3})));
  EXPECT_TRUE(std::isnan(spearman(Numbers{1, 2, 3}, Numbers{nan, nan, nan})));
  EXPECT_TRUE(std::isnan(pearson(Numbers{1, nan, 3}, Numbers{1, 2, 3})));
  EXPECT_TRUE(std::isnan(pearson(Numbers{1, infinity, 3}, Numbers{1, 2, 3})));
  EXPECT_DOUBLE_EQ(spearman(Numbers{1, infinity, 3}, Numbers{1, 3, 2}), 1);
}

TEST(MeanSquaredError, IsTheMeanOfTheSquares) {
  EXPECT_EQ(mean_squared_error(Numbers{1, 2, 3}, Numbers{1, 4, 0}), 13.0 / 3);
  EXPECT_EQ(mean_squared_error({}, {}), 0);
}

TEST(NumberScores, ListsOfDifferentLengthsAreRejected) {
  for (const auto score : {pearson, spearman, mean_squared_error})
    EXPECT_EQ(testing::error_of([&] {
                score(Numbers{1, 2}, Numbers{1});
              }),
              "a and b must have the same number of values (are 2 and 1)");
}

}  // namespace
}  // namespace qkv
