// Activation functions, plain and gated: kernel against reference, derivatives against finite differences.
#include "ops/activation.h"

#include <filesystem>

#include "ops/reference/activation_reference.h"
#include "tests/support/kernels.h"
#include "tests/support/npz.h"

namespace qkv {
namespace {

using testing::for_each_isa;
using testing::odd_shapes;
using testing::Padded;
using testing::Shape;

constexpr Activation kKinds[] = {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh};
const Dropout kDrop{.p = 0.25f, .seed = 11, .step = 3, .site = 9};

template <class Real>
std::vector<Real> packed(Shape shape, uint64_t seed) {
  return testing::normal<Real>(shape.rows * shape.cols, seed, 3);
}

template <class Real>
std::pair<std::vector<Real>, std::vector<Real>> run_reference(Activation kind, Shape shape, const Dropout& drop) {
  std::vector<Real> x = packed<Real>(shape, 1), dy = packed<Real>(shape, 2), y(x.size()), dx(x.size());
  const auto matrix = [&](std::vector<Real>& v) { return Matrix<Real>(v.data(), shape.rows, shape.cols); };
  reference::activation<Real>(kind, matrix(x), drop, matrix(y), matrix(y).whole());
  reference::activation_backward<Real>(kind, matrix(x), matrix(dy), drop, matrix(dx), matrix(dx).whole());
  return {y, dx};
}

TEST(Activation, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const Activation kind : kKinds)
      for (const Shape shape : odd_shapes())
        for (const Dropout& drop : {Dropout(), kDrop}) {
          const auto [exact_y, exact_dx] = run_reference<double>(kind, shape, drop);
          const auto [plain_y, plain_dx] = run_reference<float>(kind, shape, drop);
          Padded<float> x(shape, packed<float>(shape, 1)), dy(shape, packed<float>(shape, 2)), y(shape, 3);
          activation<float>(kind, x.view(), drop, y.view(), y.view().whole());
          activation_backward<float>(kind, x.view(), dy.view(), drop, dy.view(), dy.view().whole());  // dx may be dy
          y.expect_gaps_untouched();
          dy.expect_gaps_untouched();
          testing::expect_as_accurate(y.values(), plain_y, exact_y, 2);
          testing::expect_as_accurate(dy.values(), plain_dx, exact_dx, 3);
        }
  });
}

TEST(Activation, CanBeComputedInPlace) {
  for_each_isa([] {
    for (const Activation kind : kKinds)
      for (const Shape shape : odd_shapes()) {
        Padded<float> x(shape, packed<float>(shape, 1)), y(shape, 2);
        activation<float>(kind, x.view(), kDrop, y.view(), y.view().whole());
        activation<float>(kind, x.view(), kDrop, x.view(), x.view().whole());
        EXPECT_EQ(x.values(), y.values());
      }
  });
}

TEST(Activation, ReluGradientNeedsOnlyTheOutput) {
  for_each_isa([] {
    for (const Shape shape : odd_shapes())
      for (const Dropout& drop : {Dropout(), kDrop}) {
        Padded<float> x(shape, packed<float>(shape, 1)), y(shape, 2), dy(shape, packed<float>(shape, 3));
        Padded<float> of_input(shape, 4), of_output(shape, 5);
        activation<float>(Activation::relu, x.view(), drop, y.view(), y.view().whole());
        activation_backward<float>(Activation::relu, x.view(), dy.view(), drop, of_input.view(),
                                   of_input.view().whole());
        activation_backward<float>(Activation::relu, y.view(), dy.view(), drop, of_output.view(),
                                   of_output.view().whole());
        EXPECT_EQ(of_input.values(), of_output.values());
      }
  });
}

TEST(Activation, SlopesMatchFiniteDifferences) {
  constexpr Shape shape{3, 17};
  for (const Activation kind : kKinds) {
    std::vector<double> x = packed<double>(shape, 1), dy = packed<double>(shape, 2), dx(x.size());
    const auto matrix = [&](std::vector<double>& v) { return Matrix<double>(v.data(), shape.rows, shape.cols); };
    activation_backward<double>(kind, matrix(x), matrix(dy), kDrop, matrix(dx), matrix(dx).whole());
    testing::expect_gradient(x, dx, [&] {
      std::vector<double> y(x.size());
      activation<double>(kind, matrix(x), kDrop, matrix(y), matrix(y).whole());
      return testing::dot(y, dy);
    });
  }
}

// x covers [−100, 100], where e^x leaves the range of float32 at both ends. Errors are in roundings, 2^−24, of
// max(1, |x|, |φ(x)|) and of max(1, |φ'(x)|): a large float32 number has an error of its own rounding. So the bounds
// also suit activations that grow faster than x, such as max(0, x)², which is one rounding away.
//   φ   Every φ(x) is x times a factor between 0 and 1. The exponential or polynomial, the sum with 1, the division and
//       the product with x add one rounding each: 4.
//   φ'  In the derivative of silu, x multiplies the rounding error of 1 − σ up to x = 17, where σ rounds to 1. With
//       three more roundings: 20. In that of gelu_tanh the factor is 2 x u', which is 35 at x = 5, where σ rounds to 1.
//       With three more: 38.
TEST(Activation, IsAccurateOverTheWholeRange) {
  std::vector<float> x, ones, y, dx;
  for (int i = -100000; i <= 100000; i++) x.push_back(static_cast<float>(i) / 1000);
  ones.assign(x.size(), 1.0f);
  y = dx = ones;
  const auto row = [](std::vector<float>& v) { return Matrix<float>(v.data(), 1, std::ssize(v)); };
  for_each_isa([&] {
    for (const Activation kind : kKinds) {
      activation<float>(kind, row(x), Dropout(), row(y), row(y).whole());
      activation_backward<float>(kind, row(x), row(ones), Dropout(), row(dx), row(dx).whole());
      double value_error = 0, slope_error = 0;
      for (size_t i = 0; i < x.size(); i++) {
        const double value = reference::activation_value<double>(kind, x[i]);
        const double slope = reference::activation_slope<double>(kind, x[i]);
        const double size = std::max({1.0, std::abs(static_cast<double>(x[i])), std::abs(value)});
        value_error = std::max(value_error, std::abs(y[i] - value) / size);
        slope_error = std::max(slope_error, std::abs(dx[i] - slope) / std::max(1.0, std::abs(slope)));
      }
      EXPECT_LE(value_error, 4 * 0x1p-24);
      EXPECT_LE(slope_error, (kind == Activation::gelu_tanh ? 38 : 20) * 0x1p-24);
    }
  });
}

TEST(Activation, PropagatesNan) {
  for_each_isa([] {
    for (const Activation kind : kKinds) {
      std::vector<float> x(20, NAN), y(20);
      activation<float>(kind, Matrix<float>(x.data(), 1, 20), Dropout(), Matrix<float>(y.data(), 1, 20), {0, 1, 0, 20});
      for (const float value : y) EXPECT_TRUE(std::isnan(value));
    }
  });
}

TEST(Activation, IsTheSameBlockByBlock) {
  for_each_isa([] {
    Padded<float> x({20, 300}, 1), dy({20, 300}, 2), y({20, 300}, 3), dx({20, 300}, 4), y_parts({20, 300}, 5),
        dx_parts({20, 300}, 6);
    activation<float>(Activation::gelu, x.view(), kDrop, y.view(), y.view().whole());
    activation_backward<float>(Activation::gelu, x.view(), dy.view(), kDrop, dx.view(), dx.view().whole());
    for (const Block& block : {Block{0, 7, 0, 128}, {7, 20, 0, 128}, {0, 20, 128, 300}}) {
      activation<float>(Activation::gelu, x.view(), kDrop, y_parts.view(), block);
      activation_backward<float>(Activation::gelu, x.view(), dy.view(), kDrop, dx_parts.view(), block);
    }
    EXPECT_EQ(y.values(), y_parts.values());
    EXPECT_EQ(dx.values(), dx_parts.values());
  });
}

TEST(GatedActivation, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const Activation kind : kKinds)
      for (const Shape shape : odd_shapes())
        for (const Dropout& drop : {Dropout(), kDrop}) {
          const Shape wide{shape.rows, 2 * shape.cols};
          const auto plain = [&]<class Real>(Real) {
            std::vector<Real> x = packed<Real>(wide, 1), dy = packed<Real>(shape, 2), y(dy.size()), dx(x.size());
            const Matrix<Real> X(x.data(), wide.rows, wide.cols), dY(dy.data(), shape.rows, shape.cols);
            reference::gated_activation<Real>(kind, X, drop, {y.data(), shape.rows, shape.cols});
            reference::gated_activation_backward<Real>(kind, X, dY, drop, {dx.data(), wide.rows, wide.cols});
            return std::pair(y, dx);
          };
          const auto [plain_y, plain_dx] = plain(0.0f);
          const auto [exact_y, exact_dx] = plain(0.0);
          Padded<float> x(wide, packed<float>(wide, 1)), dy(shape, packed<float>(shape, 2)), y(shape, 3), dx(wide, 4);
          gated_activation<float>(kind, x.view(), drop, y.view());
          gated_activation_backward<float>(kind, x.view(), dy.view(), drop, dx.view());
          y.expect_gaps_untouched();
          dx.expect_gaps_untouched();
          // For numbers about 1. The smaller e^x, the larger its relative error.
          testing::expect_as_accurate(y.values(), plain_y, exact_y, 2, 1);
          testing::expect_as_accurate(dx.values(), plain_dx, exact_dx, 3, 1);
        }
  });
}

TEST(GatedActivation, GradientMatchesFiniteDifferences) {
  for (const Activation kind : kKinds) {
    std::vector<double> x = testing::normal<double>(4 * 10, 1), dy = testing::normal<double>(4 * 5, 2), dx(x.size());
    const Matrix<double> X(x.data(), 4, 10);
    gated_activation_backward<double>(kind, X, Matrix<double>(dy.data(), 4, 5), kDrop, {dx.data(), 4, 10});
    testing::expect_gradient(x, dx, [&] {
      std::vector<double> y(dy.size());
      gated_activation<double>(kind, X, kDrop, {y.data(), 4, 5});
      return testing::dot(y, dy);
    });
  }
}

TEST(Activation, GeluAgreesWithTheOnnxCase) {
  const std::string path = std::string(QKV_SHARED_DIR) + "/cases/attention/gelu_default_2.npz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: ../shared not present";
  const auto arrays = testing::read_npz(path);
  std::vector<float> x = arrays.at("input_0").as<float>(), y(x.size());
  for_each_isa([&] {
    activation<float>(Activation::gelu, Matrix<float>(x.data(), 12, 5), Dropout(), Matrix<float>(y.data(), 12, 5),
                      {0, 12, 0, 5});
    EXPECT_LE(testing::max_error(y, arrays.at("output_0").values), 1e-6);
  });
}

}  // namespace
}  // namespace qkv
