// The functions after the linear layers of heads, at values computed by hand or with torch.nn.functional.
#include "ops/dense_activation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qkv {
namespace {

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
    dense_activation(c.kind, Matrix<double>(x, 2, 1, 2));
    EXPECT_NEAR(x[0], c.of_minus_one, 1e-15) << static_cast<int>(c.kind);
    EXPECT_NEAR(x[2], c.of_two, 1e-15) << static_cast<int>(c.kind);
    EXPECT_TRUE(std::isnan(x[1]) && std::isnan(x[3]));
  }
}

}  // namespace
}  // namespace qkv
