// Properties of attention that hold for any implementation: the worked example, distributions, limits, masks, dropout.
#include "qkv/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/system/isa.h"
#include "core/to_size.h"
#include "qkv/error.h"
#include "tests/ops/attention_problem.h"

namespace qkv::testing {
namespace {

std::vector<double> flat(const nlohmann::json& rows) {
  std::vector<double> values;
  for (const auto& row : rows)
    for (double x : row) values.push_back(x);
  return values;
}

// Z and A of the example's Q, K, V: two tokens of width 2.
template <class Real>
void expect_worked_example(double tolerance) {
  std::ifstream file(QKV_GOLDEN_DIR "/worked-example.json");
  const nlohmann::json example = nlohmann::json::parse(file), &exact = example["exact"], &printed = example["printed"];
  AttentionProblem<Real> p({.T = {2}, .S = {2}, .key_width = 2, .value_width = 2});
  p.q = cast<Real>(flat(exact["Q"])), p.k = cast<Real>(flat(exact["K"])), p.v = cast<Real>(flat(exact["V"]));
  AttentionInput<Real> in = p.input();
  in.scale = static_cast<Real>(1 / exact["sqrt_dk"].get<double>());
  p.forward(in);
  std::vector<Real> A(4);
  attention_weights<Real>(in, p.rows(std::as_const(p.lse).data()), {0, 0, 0, 2}, A.data());
  EXPECT_LE(max_error(p.out, flat(exact["Z"])), tolerance);
  EXPECT_LE(max_error(A, flat(exact["A"])), tolerance);
  EXPECT_LE(max_error(p.out, flat(printed["Z"])), 5e-4);
  EXPECT_LE(max_error(A, flat(printed["A"])), 5e-4);
}

TEST(Attention, ReproducesTheWorkedExample) {
  expect_worked_example<double>(1e-12);
  expect_worked_example<float>(1e-6);
}

TEST(Attention, WeightsOfARowAreADistribution) {
  AttentionProblem<float> p({.T = {5, 9}, .S = {7, 33}, .heads = 2, .causal = Causal::bottom_right});
  p.forward();
  for (int64_t s = 0; s < 2; s++)
    for (int64_t h = 0; h < 2; h++) {
      const std::vector<float> A = p.weights(s, h);
      const size_t S = to_size(p.shape.S[to_size(s)]);
      for (size_t i = 0; i < A.size(); i += S) {
        double sum = 0;
        for (size_t j = 0; j < S; j++) {
          EXPECT_GE(A[i + j], 0);
          sum += static_cast<double>(A[i + j]);
        }
        EXPECT_NEAR(sum, 1, 16 * std::numeric_limits<float>::epsilon());  // rounding of lse and of s − lse
      }
    }
}

TEST(Attention, OutputIsWeightsTimesValues) {
  AttentionProblem<float> p({.T = {20}, .S = {30}, .key_width = 16, .value_width = 24, .mask = true});
  p.forward();
  const std::vector<float> A = p.weights(0, 0);
  std::vector<double> O(p.out.size());
  for (size_t i = 0; i < 20; i++)
    for (size_t j = 0; j < 30; j++)
      for (size_t e = 0; e < 24; e++) O[i * 24 + e] += static_cast<double>(A[i * 30 + j]) * p.v[j * 24 + e];
  EXPECT_LE(max_error(p.out, O), 3 * 16 * std::numeric_limits<float>::epsilon());  // values are below 3, mostly
}

// A change of one key and value affects exactly the rows that see it: key j of S affects query i if j <= i + shift.
void expect_causal(Causal causal, int32_t T, int32_t S, int64_t shift) {
  AttentionProblem<float> p({.T = {T}, .S = {S}, .heads = 2, .causal = causal});
  p.forward();
  const std::vector<float> before = p.out;
  const int64_t changed = S / 2;
  p.keys(p.k.data(), 8).at(0, changed, 1)[0] += 3;
  for (int64_t e = 0; e < 8; e++) p.keys(p.v.data(), 8).at(0, changed, 1)[e] += 1e3f;
  p.forward();
  for (int64_t i = 0; i < T; i++) {
    const float *was = p.queries(before.data(), 8).at(0, i, 1), *is = p.queries(p.out.data(), 8).at(0, i, 1);
    const bool sees = changed <= i + shift;
    EXPECT_EQ(std::vector(was, was + 8) != std::vector(is, is + 8), sees) << i << " of " << T << ", " << S;
  }
}

TEST(Attention, CausalRowsIgnoreLaterKeys) {
  for (const auto& [T, S] : {std::pair{40, 40}, {10, 70}, {70, 10}, {1, 90}}) {
    expect_causal(Causal::bottom_right, T, S, S - T);
    expect_causal(Causal::top_left, T, S, 0);
  }
}

TEST(Attention, LastCausalQuerySeesEveryKey) {
  AttentionProblem<double> all({.T = {1}, .S = {12}}), causal({.T = {1}, .S = {12}, .causal = Causal::bottom_right});
  all.forward(), causal.forward();
  EXPECT_EQ(all.out, causal.out);
}

TEST(Attention, RowsWithoutVisibleKeysGiveZerosAndNoGradient) {
  for (const AttentionShape& shape :
       {AttentionShape{.T = {3, 9}, .S = {4, 20}, .mask = true}, AttentionShape{.T = {3, 9}, .S = {4, 0}},
        AttentionShape{.T = {3, 9}, .S = {4, 2}, .causal = Causal::bottom_right}}) {
    AttentionProblem<float> p(shape);
    p.forward(), p.backward();
    for (size_t e = 0; e < 8; e++) {
      EXPECT_EQ(p.out[3 * 8 + e], 0);
      EXPECT_EQ(p.dq[3 * 8 + e], 0);
    }
    EXPECT_EQ(p.lse[3], -INFINITY);
    EXPECT_TRUE(std::isfinite(p.lse[2]));
  }
}

TEST(Attention, KeysWithoutQueriesGetZeroGradients) {
  AttentionProblem<float> p({.T = {0, 3}, .S = {5, 0}});
  p.forward(), p.backward();
  EXPECT_EQ(p.dk, std::vector<float>(40, 0.0f));
  EXPECT_EQ(p.dv, std::vector<float>(40, 0.0f));
  EXPECT_EQ(p.dq, std::vector<float>(24, 0.0f));
}

TEST(Attention, SequencesDoNotSeeEachOther) {
  AttentionProblem<float> both({.T = {6, 11}, .S = {9, 13}, .heads = 2}), one({.T = {6}, .S = {9}, .heads = 2});
  both.forward(), one.forward();
  EXPECT_EQ(std::vector(both.out.begin(), both.out.begin() + 6 * 16), one.out);
}

TEST(Attention, KeyRangesMayBeSharedInForward) {
  AttentionProblem<float> apart({.T = {1, 1}, .S = {9, 9}}), shared({.T = {1, 1}, .S = {9, 9}});
  std::copy_n(apart.k.begin(), 72, apart.k.begin() + 72);
  std::copy_n(apart.v.begin(), 72, apart.v.begin() + 72);
  shared.k_begin[1] = 0, shared.k_end[1] = 9;
  apart.forward(), shared.forward();
  EXPECT_EQ(apart.out, shared.out);
}

TEST(Attention, HugeScoresStayFinite) {
  for (double size : {1e2, 1e4, 1e6}) {  // far beyond what exp can hold in float32
    AttentionProblem<float> p({.T = {9}, .S = {33}, .size = size});
    AttentionProblem<double> exact(p.shape);
    p.forward(), exact.plain();
    // A score of size s is rounded by about s eps, which limits the accuracy of a weight.
    const double rounding = 16 * size * std::numeric_limits<float>::epsilon();
    EXPECT_LE(max_error(p.lse, exact.lse), rounding);
    EXPECT_LE(max_error(p.out, exact.out), std::min(4.0, 4 * rounding)) << size;
  }
}

TEST(Attention, LargeFiniteMasksOnlyShiftARow) {
  AttentionProblem<float> p({.T = {9}, .S = {33}, .mask = true});
  AttentionProblem<double> exact(p.shape);
  for (size_t i = 0; i < p.mask.size(); i++) p.mask[i] = static_cast<float>(exact.mask[i] = i % 3 ? -4096 : -1e9);
  p.forward(), exact.plain();
  EXPECT_LE(max_error(p.out, exact.out), 4 * 4096 * 1.44 * std::numeric_limits<float>::epsilon());
}

class AttentionGradient : public ::testing::TestWithParam<AttentionShape> {};

TEST_P(AttentionGradient, OfTheReferenceAgreesWithFiniteDifferences) {
  AttentionProblem<double> p(GetParam());
  p.forward(), p.backward();
  const auto loss = [&] { return p.loss(); };
  expect_gradient(p.q, p.dq, loss);
  expect_gradient(p.k, p.dk, loss);
  expect_gradient(p.v, p.dv, loss);
  for (double& m : p.mask)
    if (std::isinf(m)) m = -1;  // a difference quotient needs finite numbers
  p.forward(), p.backward();
  if (p.shape.mask) expect_gradient(p.mask, p.dmask, loss);
  if (p.shape.reach >= 0) expect_gradient(p.distances, p.ddistances, loss);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionGradient,
    ::testing::Values(
        AttentionShape{.T = {3, 4}, .S = {5, 4}, .heads = 2, .key_width = 3},
        AttentionShape{.T = {5}, .S = {7}, .causal = Causal::bottom_right},
        AttentionShape{.T = {6}, .S = {3}, .value_width = 5, .causal = Causal::bottom_right},
        AttentionShape{.T = {5}, .S = {7}, .causal = Causal::top_left},
        AttentionShape{.T = {6}, .S = {3}, .value_width = 5, .causal = Causal::top_left},
        AttentionShape{.T = {4, 2}, .S = {6, 6}, .heads = 2, .mask = true},
        AttentionShape{
            .T = {4, 6}, .S = {4, 6}, .heads = 2, .causal = Causal::bottom_right, .mask = true, .dropout = 0.3f},
        AttentionShape{.T = {4, 3}, .S = {6, 5}, .heads = 4, .mask = true, .kv_heads = 2, .repeats = kHeads | kRows},
        AttentionShape{.T = {4, 4}, .S = {6, 6}, .heads = 2, .mask = true, .repeats = kSequences, .batched = true},
        AttentionShape{.T = {7}, .S = {9}, .window = {2, 1}, .softcap = 1.5, .alibi = true, .allowed = true},
        AttentionShape{.T = {5, 3}, .S = {7, 3}, .heads = 4, .kv_heads = 2, .softcap = 1.5, .reach = 3},
        AttentionShape{
            .T = {6, 2}, .S = {6, 2}, .causal = Causal::top_left, .dropout = 0.3f, .window = {4, 0}, .reach = 9}));

TEST(Attention, ADistanceBiasIsAMaskWithTheSameNumberForEveryPairAtADistance) {
  constexpr int32_t kT = 20, kS = 50;
  for (const int64_t reach : {3, 60}) {
    AttentionProblem<float> distances({.T = {kT}, .S = {kS}, .heads = 2, .reach = reach});
    AttentionProblem<float> masked({.T = {kT}, .S = {kS}, .heads = 2, .mask = true});
    const Span at{0, kT, 0, kS, 0};
    for (int64_t h = 0; h < 2; h++)
      for (int64_t i = 0; i < kT; i++)
        for (int64_t j = 0; j < kS; j++)
          *const_cast<float*>(entry(masked.input().mask, 0, h, i, j)) =
              distances.distances[to_size(h * (2 * reach + 1) + distance_place(masked.input(), at, i, j, reach))];
    distances.forward(), masked.forward();
    EXPECT_EQ(distances.out, masked.out);
  }
}

TEST(Attention, DropoutKeepsTheMean) {
  AttentionProblem<float> p({.T = {64}, .S = {200}, .value_width = 4, .dropout = 0.25f});
  std::fill(p.v.begin(), p.v.end(), 1.0f);
  std::fill(p.q.begin(), p.q.end(), 0.0f);  // all weights are 1/200, so an output is the kept fraction divided by 0.75
  p.forward();
  double mean = 0;
  for (float x : p.out) mean += static_cast<double>(x) / static_cast<double>(p.out.size());
  EXPECT_NEAR(mean, 1, 5 * std::sqrt(0.25 / 0.75 / (64 * 200)));  // five standard deviations
}

TEST(Attention, ScoresOfStandardNormalVectorsHaveVarianceOfTheWidth) {
  constexpr size_t kWidth = 64, kRows = 128;
  const std::vector<double> q = normal<double>(kRows * kWidth, 1), k = normal<double>(kRows * kWidth, 2);
  double squares = 0;
  for (size_t i = 0; i < kRows; i++)
    for (size_t j = 0; j < kRows; j++) {
      double dot = 0;
      for (size_t e = 0; e < kWidth; e++) dot += q[i * kWidth + e] * k[j * kWidth + e];
      squares += dot * dot;
    }
  // |q|² and |k|² of 128 rows have a standard deviation of √(2/64) per row; five standard deviations of both means
  // together.
  EXPECT_NEAR(squares / (kRows * kRows) / kWidth, 1, 5 * std::sqrt(2 * 2.0 / kWidth / kRows));
}

TEST(Attention, UnscaledSoftmaxSaturates) {
  AttentionProblem<double> p({.T = {64}, .S = {64}, .key_width = 64, .value_width = 64});
  // The mean over rows of the largest weight, and of Σ_j α_j (1 − α_j), the trace of the softmax Jacobian.
  const auto measure = [&](double scale) {
    AttentionInput<double> in = p.input();
    in.scale = scale;
    p.forward(in);
    std::vector<double> A(64 * 64);
    attention_weights<double>(in, p.rows(std::as_const(p.lse).data()), {0, 0, 0, 64}, A.data());
    double largest = 0, slope = 0;
    for (auto row = A.begin(); row != A.end(); row += 64) {
      largest += *std::max_element(row, row + 64) / 64;
      for (auto a = row; a != row + 64; a++) slope += *a * (1 - *a) / 64;
    }
    return std::pair(largest, slope);
  };
  const auto [scaled_largest, scaled_slope] = measure(1.0 / 8);
  const auto [raw_largest, raw_slope] = measure(1);
  EXPECT_LT(scaled_largest, 0.3);
  EXPECT_GT(raw_largest, 0.7);
  EXPECT_GT(scaled_slope, 0.8);
  EXPECT_LT(raw_slope, 0.4);
}

// The keys for which each query has a weight, as rows of x and dots.
std::string picture(const AttentionShape& shape) {
  AttentionProblem<float> p(shape);
  p.forward();
  std::string rows;
  const std::vector<float> A = p.weights(0, 0);
  for (size_t i = 0; i < A.size(); i++) {
    if (i && i % to_size(shape.S[0]) == 0) rows += ' ';
    rows += A[i] > 0 ? 'x' : '.';
  }
  return rows;
}

TEST(Attention, WindowsSurroundThePositionOfTheQuery) {
  EXPECT_EQ(picture({.T = {4}, .S = {4}, .window = {1, 0}}), "x... xx.. .xx. ..xx");
  EXPECT_EQ(picture({.T = {4}, .S = {4}, .window = {0, 1}}), "xx.. .xx. ..xx ...x");
  EXPECT_EQ(picture({.T = {2}, .S = {4}, .window = {1, 0}}), ".xx. ..xx");
  EXPECT_EQ(picture({.T = {3}, .S = {4}, .causal = Causal::top_left, .window = {1, 5}}), "x... xx.. .xx.");
  EXPECT_EQ(picture({.T = {4}, .S = {2}, .causal = Causal::bottom_right}), ".. .. x. xx");
  EXPECT_EQ(picture({.T = {5}, .S = {2}, .causal = Causal::top_left, .window = {1, -1}}), "x. xx .x .. ..");
}

TEST(Attention, HeadsShareKeysInOrder) {
  AttentionProblem<float> shared({.T = {9}, .S = {9}, .heads = 4, .kv_heads = 2});
  AttentionProblem<float> apart({.T = {9}, .S = {9}, .heads = 4});
  for (int64_t n = 0; n < 9; n++)
    for (int64_t h = 0; h < 4; h++) {
      std::copy_n(shared.keys(shared.k.data(), 8).at(0, n, h / 2), 8, apart.keys(apart.k.data(), 8).at(0, n, h));
      std::copy_n(shared.keys(shared.v.data(), 8).at(0, n, h / 2), 8, apart.keys(apart.v.data(), 8).at(0, n, h));
    }
  shared.forward(), apart.forward();
  EXPECT_EQ(shared.out, apart.out);
}

// NaN in row `bad` of q, or in the key or value `bad`: rows that see it become NaN, all others are unchanged.
TEST(Attention, NanStaysInTheRowsThatSeeIt) {
  for (const bool tiles : {true, false})
    for (const char* where : {"q", "k", "v", "v of a key that a mask hides"}) {
      const int32_t T = tiles ? 70 : 3, S = 70, bad = tiles ? 40 : 69;
      AttentionShape shape{.T = {T}, .S = {S}, .heads = 2, .causal = Causal::bottom_right};
      shape.allowed = where[1];
      AttentionProblem<float> p(shape);
      if (where[1])
        for (size_t i = 0; i < p.allowed.size(); i++) p.allowed[i] = static_cast<int64_t>(i) % p.mask_stride != bad;
      p.forward(), p.backward();
      const AttentionProblem<float> good = p;
      const float nan = std::numeric_limits<float>::quiet_NaN();
      const int64_t row = where[0] == 'q' ? std::min<int64_t>(bad, T - 1) : bad;
      (where[0] == 'q' ? p.queries(p.q.data(), 8) : p.keys(where[0] == 'k' ? p.k.data() : p.v.data(), 8))
          .at(0, row, 1)[5] = nan;
      p.forward(), p.backward();
      for (int64_t i = 0; i < T; i++) {
        const bool spoiled = !where[1] && (where[0] == 'q' ? i == row : row <= i + S - T);
        for (int64_t e = 0; e < 8; e++) {
          const float x = p.queries(p.out.data(), 8).at(0, i, 1)[e];
          const bool column = where[0] != 'v' || e == 5;
          EXPECT_EQ(std::isnan(x), spoiled && column) << where << " row " << i << " column " << e;
          EXPECT_FALSE(std::isnan(p.queries(p.out.data(), 8).at(0, i, 0)[e])) << where << " in the other head";
          if (!spoiled) {
            EXPECT_NEAR(x, good.queries(good.out.data(), 8).at(0, i, 1)[e], 1e-6) << where;
          }
          EXPECT_EQ(std::isnan(p.queries(p.dq.data(), 8).at(0, i, 1)[e]), spoiled) << where << " dq " << i;
        }
      }
    }
}

// NaN of every payload, on every instruction set. In the first row of a tile it must not keep the other rows from
// raising their maximum.
TEST(Attention, NanOfAnyPayloadDoesNotAffectOtherRowsOfItsTile) {
  for (const std::string& isa : available_isas())
    for (const uint32_t bits : {0x7FC00000u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0x7FC00001u}) {
      force_isa(isa);
      AttentionProblem<float> p({.T = {12}, .S = {40}, .size = 200});
      AttentionProblem<double> exact(p.shape);
      p.q[3] = std::bit_cast<float>(bits);
      p.forward(), exact.plain();
      for (size_t i = 0; i < 12; i++)
        for (size_t e = 0; e < 8; e++) {
          const float x = p.out[i * 8 + e];
          EXPECT_EQ(std::isnan(x), i == 0) << isa << " row " << i;
          if (i > 0) {
            EXPECT_NEAR(x, exact.out[i * 8 + e], 1e-3) << isa << " row " << i;
          }
        }
      EXPECT_TRUE(std::isnan(p.lse[0]));
    }
  force_isa(available_isas().front());
}

// By tiles and by rows; for one key of a panel and for a whole panel.
TEST(Attention, MaskEntriesBelowMinus1e30HideNan) {
  for (const std::string& isa : available_isas())
    for (const float hides : {-INFINITY, -2e30f})
      for (const int32_t T : {9, 3}) {
        force_isa(isa);
        SCOPED_TRACE(isa + ", T " + std::to_string(T) + ", mask " + std::to_string(hides));
        AttentionProblem<float> p({.T = {T}, .S = {140}, .mask = true, .repeats = kRows});
        std::fill(p.mask.begin(), p.mask.end(), 0.0f);
        for (size_t j = 0; j < 128; j++) {
          if (j != 5 && j < 64) continue;
          p.mask[j] = hides;
          p.k[j * 8] = p.v[j * 8] = std::numeric_limits<float>::quiet_NaN();
        }
        p.forward(), p.backward();
        for (const auto& x : {p.out, p.lse, p.dq, p.dk, p.dv, p.dmask, p.weights(0, 0)})
          for (float value : x) EXPECT_FALSE(std::isnan(value));
        for (const size_t j : {5, 64, 127}) EXPECT_EQ(p.weights(0, 0)[j], 0);
      }
  force_isa(available_isas().front());
}

// Such a mask absorbs the scores: all keys get the same weight.
TEST(Attention, TheLargestMasksThatDoNotHideGiveTheMeanOfTheValues) {
  for (const int32_t T : {9, 3}) {
    AttentionProblem<float> p({.T = {T}, .S = {33}, .mask = true});
    AttentionProblem<double> exact(p.shape);
    std::fill(p.mask.begin(), p.mask.end(), -1e30f);
    std::fill(exact.mask.begin(), exact.mask.end(), 0.0);
    std::fill(exact.q.begin(), exact.q.end(), 0.0);
    p.forward(), exact.plain();
    EXPECT_LE(max_error(p.out, exact.out), 33 * std::numeric_limits<float>::epsilon());  // sums of 33 values
  }
}

TEST(Attention, GradientOfAMaskStaysWithinItsSequences) {
  AttentionProblem<float> p({.T = {5, 2}, .S = {4, 3}});
  std::vector<float> mask(5 * 4 + 2 * 4), dmask(mask.size() + 20, 777);
  AttentionInput<float> in = p.input();
  in.mask = {mask.data(), 20, 0, 4, 1};
  p.forward(in);
  AttentionGradients<float> to = p.gradients();
  to.dmask = {dmask.data(), 20, 0, 4, 1};
  const auto b = p.backward_input(in);
  std::vector<std::byte> workspace(attention_backward_workspace(in));
  attention_backward<float>(in, b.out, b.lse, b.dout, to, workspace);
  EXPECT_NE(dmask[0], 777);
  EXPECT_NE(dmask[26], 777);
  for (size_t i = 27; i < dmask.size(); i++) EXPECT_EQ(dmask[i], 777);
}

TEST(Attention, RejectsInvalidShapes) {
  AttentionProblem<float> p({.T = {1}, .S = {1}, .heads = 3});
  AttentionInput<float> in = p.input();
  in.key_width = 0;
  EXPECT_THROW(p.forward(in), Error);
  in = p.input(), in.kv_heads = 2;
  EXPECT_THROW(p.forward(in), Error);
  in = p.input(), in.distance_bias.reach = -1;
  EXPECT_THROW(p.forward(in), Error);
  in = p.input(), in.value_width = 1025;
  EXPECT_THROW(p.forward(in), Error);
  in = p.input(), in.scale = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(p.forward(in), Error);
  in = p.input(), in.dropout.p = 1;
  EXPECT_THROW(p.forward(in), Error);
  in = p.input(), in.window.right = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(p.forward(in), Error);
  in = p.input(), in.sequences.count = -1;
  EXPECT_THROW(p.forward(in), Error);
  in = p.input(), in.q.data = nullptr;
  EXPECT_THROW(p.forward(in), Error);
  std::vector<std::byte> small(attention_workspace(p.input()) / 2);
  EXPECT_THROW(attention<float>(p.input(), p.queries(p.out.data(), 8), {}, small), Error);
}

}  // namespace
}  // namespace qkv::testing
