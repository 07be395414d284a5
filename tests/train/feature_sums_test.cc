// Sums over the features of items, compared with products of the dense matrix S[v, f] = 1 / √n_v.
#include "train/optimizer/feature_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/to_size.h"
#include "tests/support/numeric.h"

namespace qkv {
namespace {

constexpr int64_t kTableItems = 150, kFeatures = 7, kWidth = 5;

// Item v has feature v mod 7 and, if v is a multiple of 3, also 0 and 6; items from 140 on have none.
ItemFeatures sample() {
  ItemFeatures features;
  for (int64_t f = 0; f < kFeatures; f++) features.names.push_back(std::to_string(f));
  for (int64_t v = 0; v < kTableItems; v++) {
    for (int64_t f = 0; f < kFeatures && v < 140; f++)
      if (f == v % kFeatures || (v % 3 == 0 && (f == 0 || f == 6))) features.ids.push_back(static_cast<int32_t>(f));
    features.offsets.push_back(std::ssize(features.ids));
  }
  return features;
}

class FeatureSumsTest : public ::testing::Test {
 protected:
  FeatureSumsTest() : S(kTableItems * kFeatures) {
    for (int64_t v = 0; v < kTableItems; v++)
      for (const int32_t f : features.of(v))
        S[to_size(v * kFeatures + f)] = 1 / std::sqrt(static_cast<double>(std::ssize(features.of(v))));
  }

  double s(int64_t v, int64_t f) const { return S[to_size(v * kFeatures + f)]; }

  const ItemFeatures features = sample();
  const FeatureSums sums{features};
  std::vector<double> S;  // [V, F]
  std::vector<float> E = testing::normal<float>(kTableItems * kWidth, 1),
                     G = testing::normal<float>(kFeatures * kWidth, 2);
  Matrix<float> items{E.data(), kTableItems, kWidth}, table{G.data(), kFeatures, kWidth};
};

// Each sum has at most 150 terms of magnitude 1 with one rounding each.
constexpr double kSumTolerance = 150 * 5 * 6e-8;

TEST_F(FeatureSumsTest, GradientEqualsThatOfTheDenseProduct) {
  std::vector<double> wanted(G.begin(), G.end());
  for (int64_t v = 0; v < kTableItems; v++)
    for (int64_t f = 0; f < kFeatures; f++)
      for (int64_t j = 0; j < kWidth; j++) wanted[to_size(f * kWidth + j)] += s(v, f) * items(v, j);
  sums.add_gradient(items, table);
  EXPECT_LT(testing::max_error(G, wanted), kSumTolerance);
}

TEST_F(FeatureSumsTest, ItemsFromTheFirstOnChangeWithTheirFeatures) {
  std::vector<float> now = testing::normal<float>(kFeatures * kWidth, 3);
  const Matrix<float> after(now.data(), kFeatures, kWidth);
  for (const int64_t first : {0, 100}) {
    std::vector<double> wanted(E.begin(), E.end());
    for (int64_t v = first; v < kTableItems; v++)
      for (int64_t f = 0; f < kFeatures; f++)
        for (int64_t j = 0; j < kWidth; j++) wanted[to_size(v * kWidth + j)] += s(v, f) * (after(f, j) - table(f, j));
    sums.add_change(after, table, first, items);
    EXPECT_LT(testing::max_error(E, wanted), kSumTolerance);
  }
}

}  // namespace
}  // namespace qkv
