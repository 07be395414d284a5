// Positional encoding, softmax and cross-entropy as public functions.
#include <gtest/gtest.h>

#include <cmath>

#include "qkv/layers.h"
#include "tests/support/errors.h"
#include "tests/support/numeric.h"

namespace qkv::layers {
namespace {

using testing::error_of;

TEST(Functions, EncodePositionsAsThePaperDoes) {
  std::vector<double> P(3 * 4);
  positional_encoding(Matrix<double>(P.data(), 3, 4));
  for (int p = 0; p < 3; p++)
    for (int j = 0; j < 2; j++) {
      const double angle = p / std::pow(10000.0, 2.0 * j / 4);
      EXPECT_NEAR(P[static_cast<size_t>(p * 4 + 2 * j)], std::sin(angle), 1e-12);
      EXPECT_NEAR(P[static_cast<size_t>(p * 4 + 2 * j + 1)], std::cos(angle), 1e-12);
    }
  EXPECT_EQ(error_of([&] { positional_encoding(Matrix<double>(P.data(), 3, 4), Positions::rotary); }),
            "positional_encoding: kind must be sinusoidal (is rotary)");
}

TEST(Functions, AreQuickWithoutRows) {  // a loop over the columns would take hours
  const Matrix<double> none(nullptr, 0, int64_t{1} << 40);
  positional_encoding(none);
  softmax<double>(none, none);
}

TEST(Functions, AverageTheCrossEntropyOverLabelsThatCount) {
  std::vector<double> logits = testing::normal<double>(4 * 5, 1), gradient(logits.size());
  const std::vector<int32_t> labels = {3, -100, 0, 4};
  const Matrix<const double> view(logits.data(), 4, 5);
  for (const double smoothing : {0.0, 0.1}) {
    const auto loss = [&] { return cross_entropy(view, labels, smoothing).loss; };
    const CrossEntropy found = cross_entropy(view, labels, smoothing, Matrix<double>(gradient.data(), 4, 5));
    EXPECT_EQ(found.tokens, 3);
    EXPECT_DOUBLE_EQ(found.loss, loss());
    if (smoothing == 0) {
      EXPECT_DOUBLE_EQ(found.loss, found.nll);
    }
    testing::expect_gradient(logits, gradient, loss);
  }
}

TEST(Functions, NameWhatIsWrong) {
  std::vector<float> x(6);
  const Matrix<const float> view(x.data(), 2, 3);
  const auto error = [&](std::vector<int32_t> labels, double smoothing) {
    return error_of([&] { cross_entropy(view, labels, smoothing); });
  };
  EXPECT_EQ(error({0}, 0), "cross_entropy: expected 2 labels, found 1");
  EXPECT_EQ(error({0, 3}, 0), "cross_entropy: labels must be from 0 to 2, or -100 (found 3)");
  EXPECT_EQ(error({0, 1}, 1), "cross_entropy: label_smoothing must be at least 0 and below 1 (is 1)");
  EXPECT_EQ(error_of([&] { softmax(view, Matrix<float>(x.data(), 3, 2)); }),
            "softmax: y has shape [3, 2], expected [2, 3]");
}

}  // namespace
}  // namespace qkv::layers
