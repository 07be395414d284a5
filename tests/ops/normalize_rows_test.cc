// The gradient of normalized rows.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.h"
#include "core/to_size.h"
#include "ops/pooling.h"

namespace qkv {
namespace {

constexpr int64_t kRows = 3, kWidth = 5, kStride = 7;

std::vector<double> random_rows(uint64_t seed) {
  Random random(seed, Stream::test);
  std::vector<double> rows;
  for (int64_t i = 0; i < kRows * kStride; i++) rows.push_back(random.normal());
  return rows;
}

Matrix<double> view(std::vector<double>& rows) { return {rows.data(), kRows, kWidth, kStride}; }

// Σ_n y_n · w_n with the normalized rows y.
double loss_of(std::vector<double> v, std::vector<double> w) {
  normalize_rows(view(v));
  double loss = 0;
  for (int64_t n = 0; n < kRows; n++)
    for (int64_t i = 0; i < kWidth; i++) loss += view(v)(n, i) * view(w)(n, i);
  return loss;
}

TEST(NormalizeRows, GradientsMatchFiniteDifferences) {
  std::vector<double> v = random_rows(1), w = random_rows(2), dv = random_rows(3);
  normalize_rows_backward<double>(view(v), view(w), view(dv));
  constexpr double kStep = 1e-5;
  for (int64_t n = 0; n < kRows; n++)
    for (int64_t i = 0; i < kWidth; i++) {
      std::vector<double> above = v, below = v;
      view(above)(n, i) += kStep;
      view(below)(n, i) -= kStep;
      EXPECT_NEAR(view(dv)(n, i), (loss_of(above, w) - loss_of(below, w)) / (2 * kStep), 1e-8);
    }
  EXPECT_EQ(dv[kWidth], random_rows(3)[kWidth]);  // not a part of the rows
}

TEST(NormalizeRows, ARowOfZerosHasNoGradient) {
  std::vector<float> v = {0, 0, 3, 4}, dy = {1, 2, 1, 2};
  const Matrix<float> m(dy.data(), 2, 2);
  normalize_rows_backward<float>(Matrix<const float>(v.data(), 2, 2), m, m);
  EXPECT_EQ(dy, (std::vector<float>{0, 0, static_cast<float>((1 - 11 * 3 / 25.0) / 5),
                                    static_cast<float>((2 - 11 * 4 / 25.0) / 5)}));
}

}  // namespace
}  // namespace qkv
