// Softmax and cross-entropy: kernel against reference, gradient against finite differences, and both against ONNX
// cases.
#include "ops/cross_entropy.h"

#include <filesystem>

#include "core/to_size.h"
#include "ops/reference/cross_entropy_reference.h"
#include "tests/support/kernels.h"
#include "tests/support/npz.h"

namespace qkv {
namespace {

using testing::expect_as_accurate;
using testing::for_each_isa;
using testing::normal;
using testing::odd_shapes;
using testing::Padded;
using testing::Shape;

// The shapes used for all ops, and rows of several pieces.
std::vector<Shape> shapes() {
  std::vector<Shape> result = odd_shapes();
  std::erase_if(result, [](Shape s) { return s.cols == 0; });
  result.insert(result.end(), {{3, 2048}, {3, 2049}, {2, 5000}});
  return result;
}

std::vector<int32_t> targets_for(Shape shape) {
  Random random(3, Stream::test);
  std::vector<int32_t> targets;
  for (int64_t n = 0; n < shape.rows; n++)
    targets.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(shape.cols))));
  return targets;
}

// Logits that grow along the row, so that later pieces hold larger ones.
template <class Real>
std::vector<Real> logits_for(Shape shape) {
  std::vector<Real> x = normal<Real>(shape.rows * shape.cols, 1, 4);
  for (size_t i = 0; i < x.size(); i++) x[i] += static_cast<Real>(static_cast<int64_t>(i) % shape.cols / 256);
  return x;
}

template <class Real>
struct Result {
  std::vector<Real> loss, nll, gradient, log_softmax;
};

template <class Real>
Result<Real> run_reference(Shape shape, Real smoothing, Real scale) {
  const size_t rows = to_size(shape.rows);
  Result<Real> r{std::vector<Real>(rows), std::vector<Real>(rows), logits_for<Real>(shape), logits_for<Real>(shape)};
  const auto matrix = [&](std::vector<Real>& v) { return Matrix<Real>(v.data(), shape.rows, shape.cols); };
  reference::cross_entropy_with_gradient<Real>(matrix(r.gradient), targets_for(shape), smoothing, scale, r.loss.data(),
                                               r.nll.data());
  reference::log_softmax(matrix(r.log_softmax));
  return r;
}

TEST(CrossEntropy, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const Shape shape : shapes())
      for (const float smoothing : {0.0f, 0.1f}) {
        SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << ", smoothing " << smoothing);
        const Result<double> exact = run_reference<double>(shape, smoothing, 0.25);
        const Result<float> plain = run_reference<float>(shape, smoothing, 0.25f);
        const std::vector<int32_t> targets = targets_for(shape);
        Padded<float> x(shape, logits_for<float>(shape)), y(shape, logits_for<float>(shape));
        std::vector<float> loss(targets.size()), nll(loss), loss_too(loss), nll_too(loss);
        cross_entropy<float>(x.view(), targets, smoothing, loss.data(), nll.data());
        cross_entropy_with_gradient<float>(x.view(), targets, smoothing, 0.25f, loss_too.data(), nll_too.data());
        log_softmax<float>(y.view());
        x.expect_gaps_untouched();
        y.expect_gaps_untouched();
        EXPECT_EQ(loss, loss_too);
        EXPECT_EQ(nll, nll_too);
        expect_as_accurate(loss, plain.loss, exact.loss, 2);
        expect_as_accurate(nll, plain.nll, exact.nll, 2);
        expect_as_accurate(x.values(), plain.gradient, exact.gradient, 3);
        expect_as_accurate(y.values(), plain.log_softmax, exact.log_softmax, 2);
      }
  });
}

TEST(CrossEntropy, GradientMatchesFiniteDifferences) {
  constexpr Shape shape{3, 9};
  const std::vector<int32_t> targets = targets_for(shape);
  for (const double smoothing : {0.0, 0.1}) {
    std::vector<double> x = normal<double>(27, 1), gradient = x, loss(3), nll(3);
    cross_entropy_with_gradient<double>(Matrix<double>(gradient.data(), 3, 9), targets, smoothing, 2.0, loss.data(),
                                        nll.data());
    testing::expect_gradient(x, gradient, [&] {
      cross_entropy<double>(Matrix<double>(x.data(), 3, 9), targets, smoothing, loss.data(), nll.data());
      return 2 * (loss[0] + loss[1] + loss[2]);
    });
  }
}

TEST(CrossEntropy, HiddenLogitsHaveProbabilityZero) {
  for_each_isa([] {
    std::vector<float> x(3000, -INFINITY), loss(1), nll(1);  // more than one piece; the first is entirely hidden
    x[2500] = x[2900] = 5;
    const std::vector<int32_t> targets = {2900};
    std::vector<float> y = x;
    log_softmax<float>(Matrix<float>(y.data(), 1, 3000));
    EXPECT_EQ(y[0], -INFINITY);
    EXPECT_NEAR(y[2500], -std::log(2.0f), 1e-6);
    cross_entropy_with_gradient<float>(Matrix<float>(x.data(), 1, 3000), targets, 0, 1, loss.data(), nll.data());
    EXPECT_NEAR(loss[0], std::log(2.0f), 1e-6);
    EXPECT_EQ(x[0], 0);
    EXPECT_NEAR(x[2500], 0.5f, 1e-6);
    EXPECT_NEAR(x[2900], -0.5f, 1e-6);
  });
}

// In one sum, the small losses after the large one would be lost.
TEST(CrossEntropy, LossesAreSummedBlockByBlock) {
  const std::vector<double> loss = {0x1p52, 0.25, 0.5, 0.5, 0.25};
  EXPECT_EQ(sum_losses<double>(loss.data(), 5, 2), 0x1p52 + 1);
  EXPECT_EQ(sum_losses<double>(loss.data(), 5, 5), 0x1p52);
  EXPECT_EQ(sum_losses<double>(loss.data(), 0, 2), 0);
}

TEST(CrossEntropy, DoesNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    const auto run = [] {
      constexpr Shape shape{100, 1000};
      Padded<float> x(shape, logits_for<float>(shape));
      std::vector<float> loss(100), nll(100);
      cross_entropy_with_gradient<float>(x.view(), targets_for(shape), 0.1f, 1, loss.data(), nll.data());
      return std::pair(x.values(), loss);
    };
    EXPECT_EQ(testing::with_threads(1, run), testing::with_threads(3, run));
  });
}

// exp(log_softmax(x)) for float32 logits near 10000, whose differences are exact, and for the middle axis of three.
TEST(LogSoftmax, AgreesWithTheOnnxSoftmaxCases) {
  const std::string folder = std::string(QKV_SHARED_DIR) + "/cases/attention/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: ../shared not present";
  const auto check = [](std::vector<float> x, int64_t rows, const std::vector<double>& expected, double tolerance) {
    log_softmax<float>(Matrix<float>(x.data(), rows, std::ssize(x) / rows));
    for (float& value : x) value = std::exp(value);
    EXPECT_LE(testing::max_error(x, expected), tolerance);
  };
  const auto large = testing::read_npz(folder + "softmax_large_number.npz");
  const auto axis_1 = testing::read_npz(folder + "softmax_axis_1.npz");
  const auto rows_of_axis_1 = [](const std::vector<double>& v) {  // [3, 4, 5] to [3, 5, 4]
    std::vector<double> rows;
    for (size_t b = 0; b < 3; b++)
      for (size_t c = 0; c < 5; c++)
        for (size_t r = 0; r < 4; r++) rows.push_back(v[(b * 4 + r) * 5 + c]);
    return rows;
  };
  for_each_isa([&] {
    // log softmax = x − lse with lse near 10000, whose rounding is 2^-11.
    check(large.at("input_0").as<float>(), 2, large.at("output_0").values, 0x1p-11);
    check(testing::cast<float>(rows_of_axis_1(axis_1.at("input_0").values)), 15,
          rows_of_axis_1(axis_1.at("output_0").values), 1e-6);
  });
}

TEST(CrossEntropy, AgreesWithTheOnnxCases) {
  const std::string folder = std::string(QKV_SHARED_DIR) + "/cases/attention/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: ../shared not present";
  const auto nll_of = [](const std::map<std::string, testing::Array>& arrays) {
    const testing::Array& scores = arrays.at("input_0");
    const std::vector<float> x = scores.as<float>();
    const std::vector<int32_t> targets = arrays.at("input_1").as<int32_t>();
    std::vector<float> loss(targets.size()), nll(targets.size());
    cross_entropy<float>(Matrix<const float>(x.data(), scores.shape[0], scores.shape[1]), targets, 0, loss.data(),
                         nll.data());
    EXPECT_EQ(loss, nll);
    return nll;
  };
  const auto mean = testing::read_npz(folder + "sce_mean.npz"),
             none = testing::read_npz(folder + "sce_none_log_prob.npz"),
             weighted = testing::read_npz(folder + "sce_mean_weight_ii.npz");
  for_each_isa([&] {
    const std::vector<float> nll = nll_of(mean);
    EXPECT_NEAR((nll[0] + nll[1] + nll[2]) / 3, mean.at("output_0").values[0], 1e-6);

    EXPECT_LE(testing::max_error(nll_of(none), none.at("output_0").values), 1e-6);
    std::vector<float> log_prob = none.at("input_0").as<float>();
    log_softmax<float>(Matrix<float>(log_prob.data(), 3, 5));
    EXPECT_LE(testing::max_error(log_prob, none.at("output_1").values), 1e-6);

    const std::vector<float> each = nll_of(weighted);
    double sum = 0, weights = 0;
    for (size_t n = 0; n < each.size(); n++) {
      const double label = weighted.at("input_1").values[n];
      if (label == 0) continue;  // the ignored index
      const double weight = weighted.at("input_2").values[static_cast<size_t>(label)];
      sum += weight * each[n];
      weights += weight;
    }
    EXPECT_NEAR(sum / weights, weighted.at("output_0").values[0], 1e-6);
  });
}

}  // namespace
}  // namespace qkv
