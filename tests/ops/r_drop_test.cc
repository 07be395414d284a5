// R-Drop: kernel against reference, gradient against finite differences, and the case of two equal passes.
#include "ops/r_drop.h"

#include "core/to_size.h"
#include "ops/cross_entropy.h"
#include "ops/reference/r_drop_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::expect_as_accurate;
using testing::for_each_isa;
using testing::normal;
using testing::Padded;
using testing::Shape;

std::vector<int32_t> targets_for(Shape shape) {
  Random random(3, Stream::test);
  std::vector<int32_t> targets;
  for (int64_t n = 0; n < shape.rows; n++)
    targets.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(shape.cols))));
  return targets;
}

template <class Real>
std::vector<Real> logits_of(Shape shape, uint64_t seed) {
  return normal<Real>(shape.rows * shape.cols, seed, 2);
}

template <class Real>
struct Result {
  std::vector<Real> a, b, loss, nll;
};

template <class Real>
Result<Real> run_reference(Shape shape, Real smoothing, Real alpha) {
  const auto rows = to_size(shape.rows);
  Result<Real> r{logits_of<Real>(shape, 1), logits_of<Real>(shape, 2), std::vector<Real>(rows),
                 std::vector<Real>(rows)};
  reference::r_drop_with_gradient<Real>({r.a.data(), shape.rows, shape.cols}, {r.b.data(), shape.rows, shape.cols},
                                        targets_for(shape), smoothing, alpha, r.loss.data(), r.nll.data());
  return r;
}

TEST(RDrop, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const Shape shape : {Shape{0, 5}, {1, 2}, {3, 15}, {3, 16}, {65, 17}, {3, 300}, {3, 2049}, {2, 5000}})
      for (const auto& [smoothing, alpha] : {std::pair{0.0f, 1.0f}, {0.1f, 5.0f}}) {
        SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << ", alpha " << alpha);
        const Result<double> exact = run_reference<double>(shape, smoothing, alpha);
        const Result<float> plain = run_reference<float>(shape, smoothing, alpha);
        Padded<float> a(shape, logits_of<float>(shape, 1)), b(shape, logits_of<float>(shape, 2));
        std::vector<float> loss(plain.loss.size()), nll(loss);
        r_drop_with_gradient<float>(a.view(), b.view(), targets_for(shape), smoothing, alpha, loss.data(), nll.data());
        a.expect_gaps_untouched();
        b.expect_gaps_untouched();
        expect_as_accurate(loss, plain.loss, exact.loss, 2);
        expect_as_accurate(nll, plain.nll, exact.nll, 2);
        expect_as_accurate(a.values(), plain.a, exact.a, 3);
        expect_as_accurate(b.values(), plain.b, exact.b, 3);
      }
  });
}

TEST(RDrop, GradientMatchesFiniteDifferences) {
  constexpr Shape shape{3, 9};
  const std::vector<int32_t> targets = targets_for(shape);
  std::vector<double> x = logits_of<double>({6, 9}, 1);  // a and b, concatenated
  const auto loss_sum = [&](std::vector<double>& values) {
    std::vector<double> loss(3), nll(3);
    r_drop_with_gradient<double>({values.data(), 3, 9}, {values.data() + 27, 3, 9}, targets, 0.1, 3.0, loss.data(),
                                 nll.data());
    return loss[0] + loss[1] + loss[2];
  };
  std::vector<double> gradient = x;
  loss_sum(gradient);
  testing::expect_gradient(x, gradient, [&] {
    std::vector<double> copy = x;
    return loss_sum(copy);
  });
}

// For two equal passes the loss is the cross-entropy, and each pass has half of its gradient.
TEST(RDrop, EqualPassesGiveTheCrossEntropy) {
  for_each_isa([] {
    constexpr Shape shape{4, 300};
    std::vector<float> a = logits_of<float>(shape, 1), b = a, one = a, loss(4), nll(4), loss_one(4), nll_one(4);
    r_drop_with_gradient<float>({a.data(), 4, 300}, {b.data(), 4, 300}, targets_for(shape), 0.1f, 5.0f, loss.data(),
                                nll.data());
    cross_entropy_with_gradient<float>({one.data(), 4, 300}, targets_for(shape), 0.1f, 0.5f, loss_one.data(),
                                       nll_one.data());
    EXPECT_EQ(loss, loss_one);
    EXPECT_EQ(nll, nll_one);
    EXPECT_EQ(a, b);
    EXPECT_LE(testing::max_error(a, one), 1e-6);
  });
}

TEST(RDrop, DoesNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    const auto gradients = [] {
      constexpr Shape shape{100, 1000};
      Padded<float> a(shape, logits_of<float>(shape, 1)), b(shape, logits_of<float>(shape, 2));
      std::vector<float> loss(100), nll(100);
      r_drop_with_gradient<float>(a.view(), b.view(), targets_for(shape), 0.1f, 2, loss.data(), nll.data());
      return std::tuple(a.values(), b.values(), loss);
    };
    EXPECT_EQ(testing::with_threads(1, gradients), testing::with_threads(3, gradients));
  });
}

}  // namespace
}  // namespace qkv
