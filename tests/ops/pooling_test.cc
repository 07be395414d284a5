// Pooling of rows of sequences, at values computed by hand.
#include "ops/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/kernels.h"

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

constexpr Pooling kPoolings[] = {Pooling::mean, Pooling::first,         Pooling::last,
                                 Pooling::max,  Pooling::mean_sqrt_len, Pooling::weighted_mean};

// Three sequences, of three rows, of one and of six.
const std::vector<int32_t> kPooledOffsets = {0, 3, 4, 10};

TEST(Pooling, GradientMatchesFiniteDifferences) {
  const std::vector<double> dv = testing::normal<double>(15, 2);
  for (const Pooling pooling : kPoolings) {
    SCOPED_TRACE(static_cast<int>(pooling));
    std::vector<double> h = testing::normal<double>(50, 1);
    testing::Padded<double> dh({10, 5}, std::vector<double>(50, NAN));
    pool_rows_backward<double>(Matrix<double>(h.data(), 10, 5), kPooledOffsets, pooling,
                               Matrix<const double>(dv.data(), 3, 5), dh.view());
    dh.expect_gaps_untouched();
    testing::expect_gradient(h, dh.values(), [&] {
      std::vector<double> v(15);
      pool_rows<double>(Matrix<double>(h.data(), 10, 5), kPooledOffsets, pooling, {v.data(), 3, 5});
      return testing::dot(v, dv);
    });
  }
}

// Gradients are computed in double precision and rounded once.
TEST(Pooling, GradientInFloatIsThatInDoubleRounded) {
  const std::vector<float> h = testing::normal<float>(50, 1), dv = testing::normal<float>(15, 2);
  const std::vector<double> h64 = testing::cast<double>(h), dv64 = testing::cast<double>(dv);
  for (const Pooling pooling : kPoolings)
    for (const int threads : {1, 3}) {
      std::vector<float> single(50);
      std::vector<double> exact(50);
      testing::with_threads(threads, [&] {
        pool_rows_backward<float>({h.data(), 10, 5}, kPooledOffsets, pooling, {dv.data(), 3, 5},
                                  {single.data(), 10, 5});
        return 0;
      });
      pool_rows_backward<double>({h64.data(), 10, 5}, kPooledOffsets, pooling, {dv64.data(), 3, 5},
                                 {exact.data(), 10, 5});
      EXPECT_EQ(single, testing::cast<float>(exact)) << static_cast<int>(pooling);
    }
}

TEST(Pooling, GradientOfAMaximumGoesToItsFirstRow) {
  const std::vector<float> h = {1, 5, 3, 5, 3, 2}, dv = {7, 8};
  std::vector<float> dh(6, NAN);
  pool_rows_backward<float>({h.data(), 3, 2}, std::vector<int32_t>{0, 3}, Pooling::max, {dv.data(), 1, 2},
                            {dh.data(), 3, 2});
  EXPECT_EQ(dh, (std::vector<float>{0, 8, 7, 0, 0, 0}));
}

TEST(Pooling, NormalizedRowsHaveLengthOneOrZero) {
  std::vector<float> v = {3, -4, 0, 0};
  normalize_rows(Matrix<float>(v.data(), 2, 2));
  EXPECT_EQ(v, (std::vector<float>{0.6F, -0.8F, 0, 0}));
}

}  // namespace
}  // namespace qkv
