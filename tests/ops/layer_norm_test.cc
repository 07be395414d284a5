// Layer normalization and RMSNorm: kernel against reference, reference against finite differences, both against the
// ONNX cases.
#include "ops/layer_norm.h"

#include <filesystem>

#include "core/to_size.h"
#include "ops/reference/layer_norm_reference.h"
#include "tests/support/kernels.h"
#include "tests/support/npz.h"

namespace qkv {
namespace {

using testing::cast;
using testing::dot;
using testing::for_each_isa;
using testing::normal;
using testing::odd_shapes;
using testing::Padded;
using testing::Shape;

constexpr double kEpsilon = 1e-5;

template <class Real>
struct Result {
  std::vector<Real> y, mean, rstd, dx, dgamma, dbeta;
};

// With mean and bias, without bias, and without both (RMSNorm).
enum class Kind { layer, no_bias, rms };
constexpr Kind kKinds[] = {Kind::layer, Kind::no_bias, Kind::rms};

// Runs forward and backward on padded matrices with unaligned parameters; gradients of parameters start at 1.
template <class Real, class Forward, class Backward>
Result<Real> run_layer_norm(Kind kind, Shape shape, Forward&& forward, Backward&& backward) {
  Padded<Real> x(shape, 1), y(shape, 2), dy(shape, 3);
  const std::vector<Real> gamma = normal<Real>(shape.cols + 1, 4), beta = normal<Real>(shape.cols + 1, 5);
  const size_t rows = to_size(shape.rows), cols = to_size(shape.cols);
  Result<Real> r{{}, std::vector<Real>(rows), std::vector<Real>(rows), {}, std::vector<Real>(cols, 1), {}};
  r.dbeta = r.dgamma;
  const Real epsilon = static_cast<Real>(kEpsilon);
  Real* mean = kind == Kind::rms ? nullptr : r.mean.data();
  forward(Matrix<const Real>(x.view()), &gamma[1], kind == Kind::layer ? &beta[1] : nullptr, epsilon, y.view(), mean,
          r.rstd.data());
  y.expect_gaps_untouched();
  r.y = y.values();
  const Matrix<Real> dx = dy.view();  // dx may be dy
  backward(Matrix<const Real>(dx), Matrix<const Real>(x.view()), &gamma[1], mean, r.rstd.data(), dx, r.dgamma.data(),
           kind == Kind::layer ? r.dbeta.data() : nullptr);
  dy.expect_gaps_untouched();
  r.dx = dy.values();
  return r;
}

template <class Real>
Result<Real> run_reference(Kind kind, Shape shape) {
  return run_layer_norm<Real>(
      kind, shape, [](auto... args) { reference::layer_norm<Real>(args...); },
      [](auto... args) { reference::layer_norm_backward<Real>(args...); });
}

Result<float> run_kernel(Kind kind, Shape shape) {
  Arena arena(size_t{1} << 24);
  return run_layer_norm<float>(
      kind, shape, [](auto... args) { layer_norm<float>(args...); },
      [&](auto... args) { layer_norm_backward<float>(args..., arena); });
}

TEST(LayerNorm, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const Kind kind : kKinds)
      for (const Shape shape : odd_shapes()) {
        if (shape.cols < 2) continue;  // a row of one number has no variance; its rstd is 1 / √ε
        SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << " kind " << static_cast<int>(kind));
        const Result<double> exact = run_reference<double>(kind, shape);
        const Result<float> plain = run_reference<float>(kind, shape), fast = run_kernel(kind, shape);
        testing::expect_as_accurate(fast.y, plain.y, exact.y, 2);
        testing::expect_as_accurate(fast.mean, plain.mean, exact.mean, 2, 1);
        testing::expect_as_accurate(fast.rstd, plain.rstd, exact.rstd, 2);
        testing::expect_as_accurate(fast.dx, plain.dx, exact.dx, 3);
        testing::expect_as_accurate(fast.dgamma, plain.dgamma, exact.dgamma, 3);
        testing::expect_as_accurate(fast.dbeta, plain.dbeta, exact.dbeta, 3);
      }
  });
}

TEST(LayerNorm, RowsOfOneNumberBecomeBeta) {
  for_each_isa([] {
    Padded<float> x({3, 1}, 1);
    const float gamma = 2, beta = 7;
    std::vector<float> mean(3), rstd(3);
    layer_norm<float>(x.view(), &gamma, &beta, 1e-5f, x.view(), mean.data(), rstd.data());
    EXPECT_EQ(x.values(), std::vector<float>(3, 7.0f));
  });
}

// Numbers of mean 100 and standard deviation 30. A sum of d of them has at most d roundings of 100 each.
TEST(LayerNorm, RowsHaveMeanZeroAndVarianceOne) {
  constexpr int64_t d = 512;
  for_each_isa([] {
    std::vector<float> x = normal<float>(d, 1, 30), gamma(d, 1.0f), beta(d, 0.0f);
    for (float& value : x) value += 100;
    float mean, rstd;
    const Matrix<float> X(x.data(), 1, d);
    layer_norm<float>(X, gamma.data(), beta.data(), 1e-5f, X, &mean, &rstd);  // y may be x
    double sum = 0, squares = 0;
    for (const float value : x) sum += value, squares += static_cast<double>(value) * value;
    EXPECT_NEAR(sum / d, 0, d * 0x1p-24 * 100 / 30);
    EXPECT_NEAR(squares / d, 1, d * 0x1p-24 * 100 / 30);
  });
}

TEST(LayerNorm, GradientsMatchFiniteDifferences) {
  for (const Kind kind : kKinds) {
    std::vector<double> x = normal<double>(21, 1), gamma = normal<double>(7, 2), beta = normal<double>(7, 3);
    std::vector<double> dy = normal<double>(21, 4), y(21), dx(21), means(3), rstd(3), dgamma(7), dbeta(7);
    double* mean = kind == Kind::rms ? nullptr : means.data();
    const Matrix<double> X(x.data(), 3, 7), Y(y.data(), 3, 7), dY(dy.data(), 3, 7), dX(dx.data(), 3, 7);
    Arena arena(1 << 20);
    const auto forward = [&] {
      layer_norm<double>(X, gamma.data(), kind == Kind::layer ? beta.data() : nullptr, kEpsilon, Y, mean, rstd.data());
      return dot(y, dy);
    };
    forward();
    layer_norm_backward<double>(dY, X, gamma.data(), mean, rstd.data(), dX, dgamma.data(),
                                kind == Kind::layer ? dbeta.data() : nullptr, arena);
    testing::expect_gradient(x, dx, forward);
    testing::expect_gradient(gamma, dgamma, forward);
    if (kind == Kind::layer) testing::expect_gradient(beta, dbeta, forward);
  }
}

TEST(LayerNorm, RmsNormKeepsTheMean) {
  std::vector<double> x = {3, 4}, gamma = {1, 10}, rstd(1);
  layer_norm<double>(Matrix<double>(x.data(), 1, 2), gamma.data(), nullptr, 0.5, Matrix<double>(x.data(), 1, 2),
                     nullptr, rstd.data());
  EXPECT_NEAR(x[0], 3 / std::sqrt(13), 1e-15);  // (3² + 4²) / 2 + ε
  EXPECT_NEAR(x[1], 40 / std::sqrt(13), 1e-14);
}

TEST(LayerNorm, DoesNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    const auto run_once = [] { return run_kernel(Kind::layer, {500, 129}); };
    const Result<float> one = testing::with_threads(1, run_once), three = testing::with_threads(3, run_once);
    EXPECT_EQ(one.y, three.y);
    EXPECT_EQ(one.dx, three.dx);
    EXPECT_EQ(one.dgamma, three.dgamma);
    EXPECT_EQ(one.dbeta, three.dbeta);
  });
}

// The files were rounded to float32 after another order of summation; recomputed in float64 they agree within 4e-7.
TEST(LayerNorm, AgreesWithTheOnnxCases) {
  const std::string folder = std::string(QKV_SHARED_DIR) + "/cases/attention/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: ../shared not present";
  struct Case {
    const char* name;
    float epsilon;
  };
  for (const Case& c : {Case{"layer_normalization_2d_axis1", 1e-5f}, Case{"layer_normalization_3d_axis2_epsilon", 0.1f},
                        Case{"layer_normalization_4d_axis_negative_2", 1e-5f}}) {
    SCOPED_TRACE(c.name);
    const auto arrays = testing::read_npz(folder + c.name + ".npz");
    const std::vector<float> x = arrays.at("input_0").as<float>(), gamma = arrays.at("input_1").as<float>(),
                             beta = arrays.at("input_2").as<float>();
    const int64_t d = std::ssize(gamma), N = std::ssize(x) / d;
    std::vector<float> y(x.size()), mean(to_size(N)), rstd(to_size(N));
    for_each_isa([&] {
      layer_norm<float>(Matrix<const float>(x.data(), N, d), gamma.data(), beta.data(), c.epsilon,
                        Matrix<float>(y.data(), N, d), mean.data(), rstd.data());
      EXPECT_LE(testing::max_error(y, arrays.at("output_0").values), 2e-6);
      EXPECT_LE(testing::max_error(mean, arrays.at("output_1").values), 1e-6);
      EXPECT_LE(testing::max_error(rstd, arrays.at("output_2").values), 2e-6);
    });
  }
}

}  // namespace
}  // namespace qkv
