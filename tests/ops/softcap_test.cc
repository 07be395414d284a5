// The softcap of logits: kernel against reference, derivative against finite differences.
#include "ops/softcap.h"

#include "ops/reference/softcap_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::odd_shapes;
using testing::Padded;
using testing::Shape;

constexpr double kCap = 2.5;

template <class Real>
std::vector<Real> softcap_input(Shape shape, uint64_t seed) {
  return testing::normal<Real>(shape.rows * shape.cols, seed, 3);
}

template <class Real>
Matrix<Real> rows_of(std::vector<Real>& v, Shape shape) {
  return {v.data(), shape.rows, shape.cols};
}

// Returns the result, and the gradient of its product with another array.
template <class Real>
std::pair<std::vector<Real>, std::vector<Real>> softcap_by_reference(Shape shape) {
  std::vector<Real> y = softcap_input<Real>(shape, 1), d = softcap_input<Real>(shape, 2);
  reference::softcap<Real>(rows_of(y, shape), static_cast<Real>(kCap));
  reference::softcap_backward<Real>(rows_of(y, shape), static_cast<Real>(kCap), rows_of(d, shape));
  return {y, d};
}

TEST(Softcap, KernelIsAsAccurateAsTheReference) {
  testing::for_each_isa([] {
    for (const Shape shape : odd_shapes()) {
      const auto [exact_y, exact_d] = softcap_by_reference<double>(shape);
      const auto [plain_y, plain_d] = softcap_by_reference<float>(shape);
      Padded<float> y(shape, softcap_input<float>(shape, 1)), d(shape, softcap_input<float>(shape, 2));
      softcap<float>(y.view(), static_cast<float>(kCap));
      softcap_backward<float>(y.view(), static_cast<float>(kCap), d.view());
      y.expect_gaps_untouched();
      d.expect_gaps_untouched();
      testing::expect_as_accurate(y.values(), plain_y, exact_y, 3);
      testing::expect_as_accurate(d.values(), plain_d, exact_d, 3);
    }
  });
}

TEST(Softcap, GradientMatchesFiniteDifferences) {
  constexpr Shape shape{3, 17};
  std::vector<double> z = softcap_input<double>(shape, 1), dy = softcap_input<double>(shape, 2), d = dy;
  const auto capped = [&] {
    std::vector<double> y = z;
    softcap<double>(rows_of(y, shape), kCap);
    return y;
  };
  std::vector<double> y = capped();
  softcap_backward<double>(rows_of(y, shape), kCap, rows_of(d, shape));
  testing::expect_gradient(z, d, [&] { return testing::dot(capped(), dy); });
}

TEST(Softcap, ResultsStayWithinTheCap) {
  testing::for_each_isa([] {
    std::vector<float> y = {-1e30f, -100, -1, 0, 1, 100, 1e30f, HUGE_VALF, -HUGE_VALF};
    softcap<float>(rows_of(y, {1, std::ssize(y)}), 30);
    EXPECT_EQ(y.front(), -30);
    EXPECT_EQ(y[3], 0);
    EXPECT_NEAR(y[4], 30 * std::tanh(1.0 / 30), 1e-6);
    EXPECT_EQ(y[6], 30);
    EXPECT_EQ(y[7], 30);
    EXPECT_EQ(y[8], -30);
  });
}

}  // namespace
}  // namespace qkv
