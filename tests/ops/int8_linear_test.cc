// Linear layers in 8 bits: equal to plain loops up to the rounding of float32 sums, close to float32 layers.
#include "ops/int8_linear.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/to_size.h"
#include "ops/cpu/linear/int8_operands.h"
#include "ops/reference/int8_linear_reference.h"
#include "tests/support/epilogue_blocks.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::normal;
using testing::Padded;

template <class Real>
struct Result {
  std::vector<Real> y, dx, dw, db;
};

template <class Real, class Forward, class Backward>
Result<Real> run(int64_t N, int64_t in, int64_t out, Forward&& forward, Backward&& backward) {
  Padded<float> x({N, in}, 1), w({out, in}, 2), dy({N, out}, 4);
  Padded<Real> y({N, out}, 3), dx({N, in}, 5), dw({out, in}, std::vector<Real>(to_size(out * in), 1));
  const std::vector<float> b = normal<float>(out + 1, 6);
  Result<Real> r{{}, {}, {}, std::vector<Real>(to_size(out), 1)};
  forward(Matrix<const float>(x.view()), Matrix<const float>(w.view()), &b[1], y.view());
  backward(Matrix<const float>(x.view()), Matrix<const float>(w.view()), Matrix<const float>(dy.view()),
           LinearGradients<Real>{dx.view(), dw.view(), r.db.data(), true});
  for (const auto* matrix : {&y, &dx, &dw}) matrix->expect_gaps_untouched();
  r.y = y.values(), r.dx = dx.values(), r.dw = dw.values();
  return r;
}

template <class Real>
Result<Real> run_reference(int64_t N, int64_t in, int64_t out) {
  return run<Real>(
      N, in, out, [](auto... args) { reference::int8_linear<Real>(args...); },
      [](auto... args) { reference::int8_linear_backward<Real>(args...); });
}

Result<float> run_op(int64_t N, int64_t in, int64_t out) {
  Arena arena;
  return run<float>(
      N, in, out, [&](auto... args) { int8_linear(args..., arena); },
      [&](auto... args) { int8_linear_backward(args..., arena); });
}

// Integer sums are exact. Each block of the depth adds three roundings of a sum, whose terms are below 25.
void expect_equal(const std::vector<float>& found, const std::vector<double>& expected, int64_t depth) {
  const double blocks = static_cast<double>(DepthBlocks{depth}.count()), largest = 25 * static_cast<double>(depth);
  EXPECT_LE(testing::max_error(found, expected), 3 * blocks * largest * 0x1p-24);
}

void expect_equal_to_plain_loops(int64_t N, int64_t in, int64_t out) {
  SCOPED_TRACE(::testing::Message() << N << " x " << in << " to " << out);
  const Result<double> plain = run_reference<double>(N, in, out);
  testing::for_each_byte_isa([&] {
    const Result<float> fast = run_op(N, in, out);
    expect_equal(fast.y, plain.y, in);
    expect_equal(fast.dx, plain.dx, out);
    expect_equal(fast.dw, plain.dw, N);
    expect_equal(fast.db, plain.db, N);
  });
}

// Widths around those of groups, vectors and panels; depths of one block and of two.
TEST(Int8Linear, EqualsPlainLoops) {
  for (const int64_t N : {0, 1, 7, 65})
    for (const int64_t in : {1, 50, 66})
      for (const int64_t out : {1, 7, 130}) expect_equal_to_plain_loops(N, in, out);
  for (const auto& [N, in, out] : {std::array<int64_t, 3>{530, 7, 9}, {9, 530, 7}, {9, 7, 530}})
    expect_equal_to_plain_loops(N, in, out);
}

// Sums of integers are exact, and so are all roundings after them the same.
TEST(Int8Linear, HasTheSameBitsWithAllInstructionsOfASet) {
  std::map<std::string, std::vector<float>> seen;
  testing::for_each_byte_isa([&] {
    const Result<float> found = run_op(70, 1090, 150);
    std::vector<float> all;
    for (const auto* part : {&found.y, &found.dx, &found.dw}) all.insert(all.end(), part->begin(), part->end());
    EXPECT_EQ(seen.try_emplace(active_isa(), all).first->second, all);
  });
}

// Numbers from a normal distribution are at most about 4, so the rounding of each has a standard deviation of at most
// 4 / 127 / √12 and adds up like noise: the relative error of a sum does not depend on its length. Both operands round.
TEST(Int8Linear, IsCloseToFloats) {
  constexpr int64_t N = 300, in = 270, out = 200;
  Arena arena;
  const Result<float> rounded = run_op(N, in, out),
                      exact = run<float>(
                          N, in, out, [&](auto... args) { linear<float>(args..., arena); },
                          [&](auto... args) { linear_backward<float>(args..., arena); });
  const double noise = std::sqrt(2.0) * 4 / 127 / std::sqrt(12.0);
  EXPECT_LE(testing::relative_error(rounded.y, exact.y), noise);
  EXPECT_LE(testing::relative_error(rounded.dx, exact.dx), noise);
  EXPECT_LE(testing::relative_error(rounded.dw, exact.dw), noise);
}

TEST(Int8Linear, NanAndInfinityStayInTheirRow) {
  constexpr int64_t N = 9, in = 70, out = 20;
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    testing::for_each_isa([&] {
      Padded<float> x({N, in}, 1), w({out, in}, 2), y({N, out}, 3);
      x.view()(4, 33) = value;
      Arena arena;
      int8_linear(x.view(), w.view(), nullptr, y.view(), arena);
      for (int64_t n = 0; n < N; n++) EXPECT_EQ(std::isnan(y.view()(n, 7)), n == 4);
    });
}

TEST(Int8Linear, AppliesTheEpilogueToEveryBlock) {
  for (const int64_t N : {1, 70, 700})
    for (const int64_t out : {1, 130, 600}) {
      constexpr int64_t in = 70;
      Padded<float> x({N, in}, 1), w({out, in}, 2), y({N, out}, 3), dy({N, in}, 5), back({in, out}, 6), z({N, out}, 7);
      Arena arena;
      testing::expect_epilogue_of_every_block(y, {N, out}, [&](const Epilogue<float>& epilogue) {
        int8_linear(x.view(), w.view(), nullptr, y.view(), arena, epilogue);
      });
      testing::expect_epilogue_of_every_block(y, {N, out}, [&](const Epilogue<float>& epilogue) {
        int8_linear_backward(z.view(), back.view(), dy.view(), {y.view(), {}, nullptr, false, epilogue}, arena);
      });
    }
}

// Sums of integers are exact, and the rest is computed in the same order.
TEST(Int8Linear, DoesNotDependOnTheNumberOfThreads) {
  const auto run_once = [] { return run_op(700, 130, 260); };
  const Result<float> one = testing::with_threads(1, run_once), three = testing::with_threads(3, run_once);
  EXPECT_EQ(one.y, three.y);
  EXPECT_EQ(one.dx, three.dx);
  EXPECT_EQ(one.dw, three.dw);
  EXPECT_EQ(one.db, three.db);
}

}  // namespace
}  // namespace qkv
