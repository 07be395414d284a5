// Pooling of rows of sequences, at values computed by hand.
#include "ops/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace qkv {
namespace {

// Two sequences, of three rows and of one, whose last column is not theirs.
std::vector<float> pooled(Pooling pooling) {
  const std::vector<float> h = {1, 2, 9, 3, -4, 9, 8, 0, 9, 5, 6, 9};
  std::vector<float> v(4);
  pool_rows(Matrix<const float>(h.data(), 4, 2, 3), std::vector<int32_t>{0, 3, 4}, pooling,
            Matrix<float>(v.data(), 2, 2));
  return v;
}

TEST(Pooling, ValuesOfEachKind) {
  const float third = static_cast<float>(-2.0 / 3), sixth = static_cast<float>(31.0 / 6);
  EXPECT_EQ(pooled(Pooling::mean), (std::vector<float>{4, third, 5, 6}));
  EXPECT_EQ(pooled(Pooling::first), (std::vector<float>{1, 2, 5, 6}));
  EXPECT_EQ(pooled(Pooling::last), (std::vector<float>{8, 0, 5, 6}));
  EXPECT_EQ(pooled(Pooling::max), (std::vector<float>{8, 2, 5, 6}));
  EXPECT_EQ(pooled(Pooling::weighted_mean), (std::vector<float>{sixth, -1, 5, 6}));
  const double root = std::sqrt(3.0);
  EXPECT_EQ(pooled(Pooling::mean_sqrt_len),
            (std::vector<float>{static_cast<float>(12 / root), static_cast<float>(-2 / root), 5, 6}));
}

TEST(Pooling, NormalizedRowsHaveLengthOneOrZero) {
  std::vector<float> v = {3, -4, 0, 0};
  normalize_rows(Matrix<float>(v.data(), 2, 2));
  EXPECT_EQ(v, (std::vector<float>{0.6F, -0.8F, 0, 0}));
}

}  // namespace
}  // namespace qkv
