// Softmax and its gradient: float kernels against the plain loops, and the plain loops against finite differences.
#include "ops/softmax.h"

#include <gtest/gtest.h>

#include "ops/reference/softmax_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::cast;
using testing::normal;
using testing::Padded;

template <class Real>
Matrix<Real> view(std::vector<Real>& values, testing::Shape shape) {
  return {values.data(), shape.rows, shape.cols};
}

TEST(Softmax, AgreesWithTheReference) {
  testing::for_each_isa([] {
    std::vector<testing::Shape> shapes = testing::odd_shapes();
    shapes.push_back({2, 5000});  // several pieces
    for (const auto& shape : shapes) {
      const int64_t size = shape.rows * shape.cols;
      std::vector<float> x = normal<float>(size, 1, 5), dy = normal<float>(size, 2), plain = x, dplain = x;
      std::vector<double> exact = cast<double>(x), dexact(x.size()), dy64 = cast<double>(dy);
      reference::softmax<float>(view(x, shape), view(plain, shape));
      reference::softmax<double>(view(exact, shape), view(exact, shape));

      Padded<float> in(shape, x), out(shape, x);
      softmax<float>(in.view(), out.view());
      out.expect_gaps_untouched();
      testing::expect_as_accurate(out.values(), plain, exact, 2);
      softmax<float>(in.view(), in.view());
      EXPECT_EQ(in.values(), out.values());

      reference::softmax_backward<float>(view(plain, shape), view(dy, shape), view(dplain, shape));
      reference::softmax_backward<double>(view(exact, shape), view(dy64, shape), view(dexact, shape));
      Padded<float> gradient(shape, dy);
      softmax_backward<float>(out.view(), gradient.view(), gradient.view());
      gradient.expect_gaps_untouched();
      testing::expect_as_accurate(gradient.values(), dplain, dexact, 2, 1);
    }
  });
}

TEST(Softmax, HasTheGradientOfFiniteDifferences) {
  std::vector<double> x = normal<double>(3 * 7, 1), y(x.size()), dx(x.size());
  const std::vector<double> dy = normal<double>(3 * 7, 2);
  const auto loss = [&] {
    softmax<double>(Matrix<const double>(x.data(), 3, 7), Matrix<double>(y.data(), 3, 7));
    return testing::dot(y, dy);
  };
  loss();
  softmax_backward<double>(Matrix<const double>(y.data(), 3, 7), Matrix<const double>(dy.data(), 3, 7),
                           Matrix<double>(dx.data(), 3, 7));
  testing::expect_gradient(x, dx, loss);
}

TEST(Softmax, GivesZerosWhereEverythingIsHidden) {
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  std::vector<float> x = {hidden, hidden, hidden, 0, hidden, 0};
  softmax<float>(Matrix<float>(x.data(), 2, 3), Matrix<float>(x.data(), 2, 3));
  EXPECT_EQ(x, (std::vector<float>{0, 0, 0, 0.5f, 0, 0.5f}));
}

}  // namespace
}  // namespace qkv
