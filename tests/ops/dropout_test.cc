// The dropout kernels against the definition of the mask.
#include "ops/dropout.h"

#include "ops/reference/dropout_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::for_each_isa;
using testing::odd_shapes;
using testing::Padded;
using testing::Shape;

const Dropout kDrop{.p = 0.3f, .seed = 0x123456789ABCDEF0, .step = 17, .site = 0x5003};

TEST(Dropout, KeepsTheElementsThatTheDefinitionKeeps) {
  for_each_isa([] {
    for (const Shape shape : odd_shapes()) {
      Padded<float> x(shape, 1), y(shape, 2);
      dropout<float>(x.view(), kDrop, y.view());
      y.expect_gaps_untouched();
      for (int64_t r = 0; r < shape.rows; r++)
        for (int64_t c = 0; c < shape.cols; c++)
          ASSERT_EQ(y.view()(r, c), kDrop.keeps(r, c) ? x.view()(r, c) * kDrop.scale() : 0.0f) << r << ", " << c;
    }
  });
}

TEST(Dropout, AddsTheKeptElementsToTheResidual) {
  for_each_isa([] {
    for (const Shape shape : odd_shapes()) {
      Padded<float> x(shape, 1), f(shape, 2);
      std::vector<float> plain(x.values());
      const std::vector<float> f_values = f.values();
      const Matrix<float> y(plain.data(), shape.rows, shape.cols);
      const Matrix<const float> packed_f(f_values.data(), shape.rows, shape.cols);
      reference::add_dropout<float>(y, packed_f, kDrop, y);
      add_dropout<float>(x.view(), f.view(), kDrop, f.view());  // y may be f
      f.expect_gaps_untouched();
      // The kernel may fuse the product and the sum: one rounding of a value below 8 apart.
      EXPECT_LE(testing::max_error(f.values(), plain), 0x1p-21);
    }
  });
}

TEST(Dropout, CopiesIfTheProbabilityIsZero) {
  for_each_isa([] {
    Padded<float> x({3, 50}, 1), y({3, 50}, 2);
    dropout<float>(x.view(), Dropout(), y.view());
    EXPECT_EQ(x.values(), y.values());
  });
}

// The number of dropped elements among n has standard deviation √(n p (1 − p)); five of them are allowed. The 16-bit
// threshold changes p by at most 2^−17.
TEST(Dropout, DropsTheRequestedFraction) {
  constexpr int64_t kRows = 256, kCols = 512;
  for (const float p : {0.1f, 0.5f, 0.9f}) {
    const Dropout drop{.p = p, .seed = 5, .step = 1, .site = 2};
    std::vector<float> x(kRows * kCols, 1.0f);
    const Matrix<float> X(x.data(), kRows, kCols);
    dropout<float>(X, drop, X);
    const double dropped = static_cast<double>(std::count(x.begin(), x.end(), 0.0f)), n = kRows * kCols;
    EXPECT_NEAR(dropped, n * p, 5 * std::sqrt(n * p * (1 - p)) + n * 0x1p-17);
  }
}

TEST(Dropout, DiffersBySeedStepAndSite) {
  const auto mask = [](const Dropout& drop) {
    std::vector<float> x(512, 1.0f);
    const Matrix<float> X(x.data(), 2, 256);
    dropout<float>(X, drop, X);
    return x;
  };
  Dropout other = kDrop;
  EXPECT_EQ(mask(other), mask(kDrop));
  other.seed += uint64_t{1} << 32;
  EXPECT_NE(mask(other), mask(kDrop));
  other = kDrop;
  other.step++;
  EXPECT_NE(mask(other), mask(kDrop));
  other = kDrop;
  other.site++;
  EXPECT_NE(mask(other), mask(kDrop));
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  const auto run = [] {
    Padded<float> x({200, 300}, 1);
    dropout<float>(x.view(), kDrop, x.view());
    return x.values();
  };
  EXPECT_EQ(testing::with_threads(1, run), testing::with_threads(3, run));
}

TEST(Dropout, IsItsOwnGradient) {
  std::vector<double> x = testing::normal<double>(3 * 130, 1), dy = testing::normal<double>(3 * 130, 2), dx(3 * 130);
  const auto matrix = [](std::vector<double>& v) { return Matrix<double>(v.data(), 3, 130); };
  dropout<double>(matrix(dy), kDrop, matrix(dx));
  testing::expect_gradient(x, dx, [&] {
    std::vector<double> y(x.size());
    dropout<double>(matrix(x), kDrop, matrix(y));
    return testing::dot(y, dy);
  });
}

}  // namespace
}  // namespace qkv
