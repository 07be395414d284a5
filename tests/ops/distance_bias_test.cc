// Biases of distances: the gradient against finite differences, and published slopes of ALiBi.
#include "ops/distance_bias.h"

#include <gtest/gtest.h>

#include "core/to_size.h"
#include "tests/support/numeric.h"

namespace qkv {
namespace {

constexpr int64_t kBuckets = 4, kHeads = 3, kWidth = 7;
const std::vector<int32_t> kBucketOf = {3, 1, 1, 0, 2, 2, 3};

TEST(DistanceBias, IsTheEntryOfTheBucket) {
  const std::vector<float> table = testing::normal<float>(kBuckets * kHeads, 1);
  std::vector<float> bias(kHeads * kWidth);
  distance_bias<float>(Matrix<const float>(table.data(), kBuckets, kHeads), kBucketOf, {bias.data(), kHeads, kWidth});
  for (int64_t h = 0; h < kHeads; h++)
    for (int64_t e = 0; e < kWidth; e++)
      EXPECT_EQ(bias[to_size(h * kWidth + e)], table[to_size(kBucketOf[to_size(e)] * kHeads + h)]);
}

TEST(DistanceBias, GradientMatchesFiniteDifferences) {
  std::vector<double> table = testing::normal<double>(kBuckets * kHeads, 1), dtable(table.size());
  const std::vector<double> dbias = testing::normal<double>(kHeads * kWidth, 2);
  distance_bias_backward(Matrix<const double>(dbias.data(), kHeads, kWidth), kBucketOf,
                         Matrix<double>(dtable.data(), kBuckets, kHeads));
  testing::expect_gradient(table, dtable, [&] {
    std::vector<double> bias(dbias.size());
    distance_bias<double>(Matrix<const double>(table.data(), kBuckets, kHeads), kBucketOf,
                          {bias.data(), kHeads, kWidth});
    double sum = 0;
    for (size_t i = 0; i < bias.size(); i++) sum += bias[i] * dbias[i];
    return sum;
  });
}

// The values of get_slopes in the code of the paper.
TEST(DistanceBias, SlopesOfAlibi) {
  std::vector<double> slopes(8);
  alibi_slopes(8, slopes.data());
  EXPECT_EQ(slopes, (std::vector<double>{0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}));
  alibi_slopes(6, slopes.data());
  slopes.resize(6);
  EXPECT_EQ(slopes, (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125}));
}

}  // namespace
}  // namespace qkv
