// The functions after the linear layers of heads, at values computed by hand or with torch.nn.functional.
#include "ops/dense_activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/kernels.h"

namespace qkv {
namespace {

constexpr DenseActivation kDenseActivations[] = {DenseActivation::identity, DenseActivation::tanh,
                                                 DenseActivation::relu,     DenseActivation::gelu,
                                                 DenseActivation::sigmoid,  DenseActivation::silu};

TEST(DenseActivation, ValuesOfEachFunction) {
  struct Case {
    DenseActivation kind;
    double of_minus_one, of_two;
  };
  for (const Case& c : {Case{DenseActivation::identity, -1, 2},
                        {DenseActivation::tanh, -0.76159415595576485, 0.96402758007581690},
                        {DenseActivation::relu, 0, 2},
                        {DenseActivation::gelu, -0.15865525393145707, 1.9544997361036416},
                        {DenseActivation::sigmoid, 0.26894142136999510, 0.88079707797788243},
                        {DenseActivation::silu, -0.26894142136999510, 1.7615941559557649}}) {
    double x[4] = {-1, NAN, 2, NAN};
    const Matrix<double> m(x, 2, 1, 2);
    dense_activation<double>(c.kind, m, m);
    EXPECT_NEAR(x[0], c.of_minus_one, 1e-15) << static_cast<int>(c.kind);
    EXPECT_NEAR(x[2], c.of_two, 1e-15) << static_cast<int>(c.kind);
    EXPECT_TRUE(std::isnan(x[1]) && std::isnan(x[3]));
  }
}

TEST(DenseActivation, GradientMatchesFiniteDifferences) {
  const testing::Shape shape{5, 7};
  const std::vector<double> dy = testing::normal<double>(35, 2);
  for (const DenseActivation kind : kDenseActivations) {
    SCOPED_TRACE(static_cast<int>(kind));
    std::vector<double> x = testing::normal<double>(35, 1, 2);
    testing::Padded<double> gradient(shape, dy);
    dense_activation_backward<double>(kind, Matrix<double>(x.data(), 5, 7), gradient.view());
    gradient.expect_gaps_untouched();
    testing::expect_gradient(x, gradient.values(), [&] {
      std::vector<double> y(35);
      dense_activation<double>(kind, Matrix<const double>(x.data(), 5, 7), Matrix<double>(y.data(), 5, 7));
      return testing::dot(y, dy);
    });
  }
}

// The kernels compute in double precision and round once.
TEST(DenseActivation, InFloatIsTheRoundedValueInDouble) {
  const std::vector<double> x = testing::normal<double>(40, 3, 3), dy = testing::normal<double>(40, 4);
  for (const DenseActivation kind : kDenseActivations) {
    SCOPED_TRACE(static_cast<int>(kind));
    std::vector<float> single = testing::cast<float>(x), slopes = testing::cast<float>(dy);
    std::vector<double> exact = x, exact_slopes = dy;
    const Matrix<float> x32(single.data(), 5, 8);
    const Matrix<double> x64(exact.data(), 5, 8);
    dense_activation_backward<float>(kind, x32, {slopes.data(), 5, 8});
    dense_activation_backward<double>(kind, x64, {exact_slopes.data(), 5, 8});
    dense_activation<float>(kind, x32, x32);
    dense_activation<double>(kind, x64, x64);
    EXPECT_EQ(single, testing::cast<float>(exact));
    EXPECT_EQ(slopes, testing::cast<float>(exact_slopes));
  }
}

TEST(DenseActivation, StaysFiniteForLargeNumbers) {
  for (const DenseActivation kind : kDenseActivations)
    for (const float large : {-1e30F, -800.F, 800.F, 1e30F}) {
      float y = large, dy = 1;
      dense_activation<float>(kind, {&y, 1, 1}, {&y, 1, 1});
      dense_activation_backward<float>(kind, {&large, 1, 1}, {&dy, 1, 1});
      EXPECT_TRUE(std::isfinite(y) && std::isfinite(dy)) << static_cast<int>(kind) << " of " << large;
    }
}

}  // namespace
}  // namespace qkv
