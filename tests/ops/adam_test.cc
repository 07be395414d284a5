// Adam: kernel against reference, reference against steps computed by hand.
#include "ops/adam.h"

#include "ops/reference/adam_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::cast;
using testing::expect_as_accurate;
using testing::for_each_isa;
using testing::normal;

constexpr size_t kSizes[] = {0, 1, 15, 16, 17, 50, 300, 16384, 40001};

template <class Real>
struct State {
  std::vector<Real> w, gradient, m, v, average;

  // Three elements before the spans keep them unaligned.
  explicit State(size_t n)
      : w(normal<Real>(static_cast<int64_t>(n) + 3, 1)),
        gradient(normal<Real>(static_cast<int64_t>(n) + 3, 2)),
        m(normal<Real>(static_cast<int64_t>(n) + 3, 3)),
        v(normal<Real>(static_cast<int64_t>(n) + 3, 4)),
        average(normal<Real>(static_cast<int64_t>(n) + 3, 5)) {
    for (Real& value : v) value = std::abs(value);
  }
  template <class Update>
  void update(const AdamStep& step, Update&& f) {
    const auto tail = [](std::vector<Real>& x) { return std::span<Real>(x).subspan(3); };
    f(step, tail(w), tail(gradient), tail(m), tail(v), tail(average));
  }
};

std::vector<AdamStep> steps() {
  return {{.step = 1, .average_decay = 0.9},
          {.learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 0.5, .step = 7, .average_decay = 0.99},
          {.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true, .gradient_scale = 0.5, .step = 1000}};
}

TEST(Adam, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const size_t n : kSizes)
      for (const AdamStep& step : steps()) {
        State<double> exact(n);
        State<float> plain(n), fast(n);
        exact.update(step, [](auto... args) { reference::adam_update<double>(args...); });
        plain.update(step, [](auto... args) { reference::adam_update<float>(args...); });
        fast.update(step, [](auto... args) { adam_update<float>(args...); });
        EXPECT_EQ(fast.gradient, cast<float>(exact.gradient));  // zeros after the first three
        expect_as_accurate(fast.w, plain.w, exact.w, 2);
        expect_as_accurate(fast.m, plain.m, exact.m, 2);
        expect_as_accurate(fast.v, plain.v, exact.v, 2);
        expect_as_accurate(fast.average, plain.average, exact.average, 2);
      }
  });
}

TEST(SumOfSquares, GivesTheSumOfEachBlock) {
  for_each_isa([] {
    constexpr size_t kBlock = kAdamBlock, kSize = 300 * kBlock + 5;  // some of the 256 parts of a sum have two blocks
    const std::vector<float> x = normal<float>(kSize, 1);
    std::vector<double> squares(301);
    const double sum = sum_of_squares<float>(x, squares);
    EXPECT_EQ(sum, sum_of_squares<float>(x));
    EXPECT_EQ(sum, sum_of_blocks(squares));
    for (const size_t b : {0, 150, 299, 300})
      EXPECT_EQ(squares[b], sum_of_squares<float>(std::span(x).subspan(b * kBlock).first(b < 300 ? kBlock : 5)));
  });
  const std::vector<double> x = testing::normal<double>(kAdamBlock + 2, 1);
  std::vector<double> squares(2);
  sum_of_squares<double>(x, squares);
  EXPECT_EQ(squares[1], x[kAdamBlock] * x[kAdamBlock] + x[kAdamBlock + 1] * x[kAdamBlock + 1]);
}

// At step 1, m / (1 − β1) = g and v / (1 − β2) = g², so every weight moves by the learning rate in the direction
// opposite to its gradient.
TEST(Adam, FirstStepMovesByTheLearningRate) {
  std::vector<double> w = {1, 2, 3}, g = {0.5, -0.001, 100}, m(3), v(3);
  adam_update<double>({.learning_rate = 0.1}, w, g, m, v);
  EXPECT_NEAR(w[0], 0.9, 1e-6);
  EXPECT_NEAR(w[1], 2.1, 1e-6);
  EXPECT_NEAR(w[2], 2.9, 1e-6);
  EXPECT_EQ(g, std::vector<double>(3));
}

TEST(Adam, DecoupledDecayShrinksTheWeightItself) {
  std::vector<double> w = {2}, g = {0}, m(1), v(1);
  adam_update<double>({.learning_rate = 0.1, .weight_decay = 0.5, .decoupled = true}, w, g, m, v);
  EXPECT_DOUBLE_EQ(w[0], 2 - 0.1 * 0.5 * 2);
  w = {2};
  adam_update<double>({.learning_rate = 0.1, .weight_decay = 0.5}, w, g, m, v);  // g = 1: a first step of Adam
  EXPECT_NEAR(w[0], 1.9, 1e-6);
}

TEST(Adam, DoesNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    const auto run = [] {
      State<float> state(40001);
      state.update(steps()[1], [](auto... args) { adam_update<float>(args...); });
      return std::tuple(state.w, state.m, state.v, state.average, sum_of_squares<float>(state.w));
    };
    EXPECT_EQ(testing::with_threads(1, run), testing::with_threads(3, run));
  });
}

TEST(Adam, MovingAverageFollowsTheNewWeights) {
  std::vector<double> w = {1}, g = {0.5}, m(1), v(1), average = {3};
  adam_update<double>({.learning_rate = 0.1, .average_decay = 0.75}, w, g, m, v, average);
  EXPECT_DOUBLE_EQ(average[0], 0.75 * 3 + 0.25 * w[0]);
}

TEST(Adam, MovingAverageCanBeOff) {
  for_each_isa([] {
    State<float> with(300), without(300);
    with.update(steps()[0], [](auto... args) { adam_update<float>(args...); });
    without.update(steps()[0], [](const AdamStep& step, auto w, auto gradient, auto m, auto v, auto) {
      adam_update<float>(step, w, gradient, m, v);
    });
    EXPECT_EQ(with.w, without.w);
  });
}

// Two orders of summing n squares in double differ by at most n roundings.
TEST(SumOfSquares, AgreesWithTheReference) {
  for_each_isa([] {
    for (const size_t n : {0, 1, 15, 16, 17, 300, 16384, 40001, 5000000}) {
      const std::vector<float> x = n < 100000 ? normal<float>(static_cast<int64_t>(n), 1) : std::vector<float>(n, 0.5f);
      const double expected = reference::sum_of_squares<float>(x);
      EXPECT_NEAR(sum_of_squares<float>(x), expected, static_cast<double>(n) * 0x1p-53 * expected);
    }
  });
}

}  // namespace
}  // namespace qkv
