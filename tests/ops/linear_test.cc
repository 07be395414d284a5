// The linear layer: products against plain loops, gradients against finite differences, and the division into blocks.
#include "ops/linear.h"

#include "core/to_size.h"
#include "ops/reference/linear_reference.h"
#include "tests/support/epilogue_blocks.h"
#include "tests/support/kernels.h"
#include "tests/support/sanitizers.h"

namespace qkv {
namespace {

using testing::dot;
using testing::normal;
using testing::Padded;

template <class Real>
struct Result {
  std::vector<Real> y, dx, dw, db;
};

// Runs forward and backward on padded matrices; gradients of the parameters start at 1, dX is added to.
template <class Real, class Forward, class Backward>
Result<Real> run_linear(int64_t N, int64_t in, int64_t out, Forward&& forward, Backward&& backward) {
  Padded<Real> x({N, in}, 1), w({out, in}, 2), y({N, out}, 3), dy({N, out}, 4), dx({N, in}, 5);
  Padded<Real> dw({out, in}, std::vector<Real>(to_size(out * in), 1));
  const std::vector<Real> b = normal<Real>(out + 1, 6);
  Result<Real> r{{}, {}, {}, std::vector<Real>(to_size(out), 1)};
  forward(Matrix<const Real>(x.view()), Matrix<const Real>(w.view()), &b[1], y.view());
  backward(Matrix<const Real>(x.view()), Matrix<const Real>(w.view()), Matrix<const Real>(dy.view()),
           LinearGradients<Real>{dx.view(), dw.view(), r.db.data(), true});
  for (const auto* matrix : {&y, &dx, &dw}) matrix->expect_gaps_untouched();
  r.y = y.values(), r.dx = dx.values(), r.dw = dw.values();
  return r;
}

template <class Real>
Result<Real> run_reference(int64_t N, int64_t in, int64_t out) {
  return run_linear<Real>(
      N, in, out, [](auto... args) { reference::linear<Real>(args...); },
      [](auto... args) { reference::linear_backward<Real>(args...); });
}

Result<float> run_product(int64_t N, int64_t in, int64_t out) {
  Arena arena;
  return run_linear<float>(
      N, in, out, [&](auto... args) { linear<float>(args..., arena); },
      [&](auto... args) { linear_backward<float>(args..., arena); });
}

void expect_as_accurate_as_plain_loops(int64_t N, int64_t in, int64_t out) {
  SCOPED_TRACE(::testing::Message() << N << " x " << in << " to " << out);
  const Result<double> exact = run_reference<double>(N, in, out);
  const Result<float> plain = run_reference<float>(N, in, out), fast = run_product(N, in, out);
  testing::expect_as_accurate(fast.y, plain.y, exact.y, 2);
  testing::expect_as_accurate(fast.dx, plain.dx, exact.dx, 3);
  testing::expect_as_accurate(fast.dw, plain.dw, exact.dw, 3);
  testing::expect_as_accurate(fast.db, plain.db, exact.db, 3);
}

// Widths around those of vectors, tiles and panels; depths beyond one block; few weights and many.
// Sanitizers make the plain loops slow; the optimized build runs the larger problems.
constexpr int64_t kMostRows = testing::kAddressSanitizer ? 65 : 300;

TEST(Linear, IsAsAccurateAsPlainLoops) {
  testing::for_each_isa([] {
    for (const int64_t N : {0, 1, 65, 130})
      for (const int64_t in : {1, 50, 260})
        for (const int64_t out : {1, 7, 50, 530})
          if (N <= kMostRows) expect_as_accurate_as_plain_loops(N, in, out);
  });
}

TEST(Linear, IsAsAccurateWithSeveralRunsOfRows) {
  testing::for_each_isa([] {
    for (const int64_t out : {1, 50}) expect_as_accurate_as_plain_loops(1300, 33, out);
  });
}

TEST(Linear, IsAsAccurateForTheShapesOfOneDnn) {
  for (const int64_t N : {0, 1, 65, 300})
    if (N <= kMostRows) expect_as_accurate_as_plain_loops(N, 270, 530);
}

TEST(Linear, GradientsMatchFiniteDifferences) {
  constexpr int64_t N = 4, in = 3, out = 5;
  std::vector<double> x = normal<double>(N * in, 1), w = normal<double>(out * in, 2), b = normal<double>(out, 3);
  const std::vector<double> dy = normal<double>(N * out, 4);
  std::vector<double> y(N * out), dx(N * in), dw(out * in), db(out);
  const Matrix<double> X(x.data(), N, in), W(w.data(), out, in);
  Arena arena;
  const auto loss = [&] {
    linear<double>(X, W, b.data(), Matrix<double>(y.data(), N, out), arena);
    return dot(y, dy);
  };
  const Matrix<const double> dY(dy.data(), N, out);
  linear_backward<double>(X, W, dY, {{dx.data(), N, in}, {dw.data(), out, in}, db.data(), false}, arena);
  testing::expect_gradient(x, dx, loss);
  testing::expect_gradient(w, dw, loss);
  testing::expect_gradient(b, db, loss);
}

TEST(Linear, AppliesTheEpilogueToEveryBlock) {
  for (const int64_t N : {1, 70, 700})
    for (const int64_t in : {20, 270})
      for (const int64_t out : {1, 130, 600}) {
        SCOPED_TRACE(::testing::Message() << N << " x " << in << " to " << out);
        Padded<float> x({N, in}, 1), w({out, in}, 2), y({N, out}, 3), dx({N, out}, 5), dw({in, out}, 7);
        const std::vector<float> b = normal<float>(out, 8);
        Arena arena;
        testing::expect_epilogue_of_every_block(y, {N, out}, [&](const Epilogue<float>& epilogue) {
          linear<float>(x.view(), w.view(), b.data(), y.view(), arena, epilogue);
        });
        Padded<float> w_back({in, out}, 9);  // the shapes for backward: dY [N, in], W [in, out], X [N, out]
        testing::expect_epilogue_of_every_block(dx, {N, out}, [&](const Epilogue<float>& epilogue) {
          linear_backward<float>(y.view(), w_back.view(), x.view(), {dx.view(), dw.view(), nullptr, false, epilogue},
                                 arena);
        });
      }
}

// Each kernel leaves out dW alone: dX and db are as accurate as with it.
TEST(Linear, GivesTheOtherGradientsWithoutTheWeights) {
  for (const auto& [N, in, out] :
       {std::tuple<int64_t, int64_t, int64_t>{70, 20, 30}, {300, 250, 400}, {300, 270, 600}}) {
    SCOPED_TRACE(::testing::Message() << N << " x " << in << " to " << out);
    Padded<float> x({N, in}, 1), w({out, in}, 2), dy({N, out}, 3);
    const auto gradients = [&, N = N, in = in, out = out](bool with_weights) {
      Padded<float> dx({N, in}, 4);
      std::vector<float> dw(to_size(out * in)), db(to_size(out));
      Arena arena;
      linear_backward<float>(x.view(), w.view(), dy.view(),
                             {dx.view(), {with_weights ? dw.data() : nullptr, out, in}, db.data(), false}, arena);
      return std::pair(dx.values(), db);
    };
    const auto with = gradients(true), without = gradients(false);
    EXPECT_LE(testing::relative_error(without.first, with.first), 1e-6);
    EXPECT_LE(testing::relative_error(without.second, with.second), 1e-6);
  }
}

TEST(Linear, DoesNotDependOnTheNumberOfThreads) {
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{700, 16}, {700, 64}, {700, 260}, {4200, 50}}) {
    const auto run_once = [&, N = rows, w = width] { return run_product(N, w, w); };
    const Result<float> one = testing::with_threads(1, run_once), three = testing::with_threads(3, run_once);
    EXPECT_EQ(one.y, three.y);
    EXPECT_EQ(one.dx, three.dx);
    EXPECT_EQ(one.dw, three.dw);
    EXPECT_EQ(one.db, three.db);
  }
}

}  // namespace
}  // namespace qkv
