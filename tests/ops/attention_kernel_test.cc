// The float kernels of attention against the reference in float64, on every instruction set and any number of threads.
#include <gtest/gtest.h>

#include <string>

#include "core/isa.h"
#include "core/threads.h"
#include "tests/ops/attention_problem.h"

namespace qkv::testing {
namespace {

std::vector<AttentionShape> shapes() {
  std::vector<AttentionShape> list;
  for (int64_t width : {1, 3, 8, 16, 17, 32, 50, 64, 100, 256})
    list.push_back({.T = {7, 1, 0, 13}, .S = {9, 5, 4, 21}, .heads = 2, .key_width = width, .value_width = width});
  for (int32_t T : {1, 4, 5, 6, 7, 12, 31})
    for (int32_t S : {1, 2, 15, 16, 17, 48, 63, 64, 65, 130})
      list.push_back({.T = {T},
                      .S = {S},
                      .heads = 2,
                      .key_width = 20,
                      .value_width = 12,
                      .causal = static_cast<Causal>((T + S) % 3),
                      .gap = S % 3});
  list.push_back({.T = {150}, .S = {150}, .key_width = 64, .value_width = 64, .causal = Causal::bottom_right});
  list.push_back(
      {.T = {300}, .S = {140}, .key_width = 32, .value_width = 48, .causal = Causal::bottom_right, .gap = 5});
  list.push_back(
      {.T = {140}, .S = {300}, .key_width = 48, .value_width = 32, .causal = Causal::bottom_right, .gap = 1});
  list.push_back({.T = {140}, .S = {300}, .key_width = 48, .value_width = 32, .causal = Causal::top_left, .gap = 1});
  list.push_back(
      {.T = {300}, .S = {140}, .key_width = 32, .value_width = 48, .causal = Causal::top_left, .dropout = 0.1f});
  list.push_back({.T = {33, 40}, .S = {70, 20}, .heads = 3, .key_width = 24, .value_width = 40, .mask = true});
  list.push_back({.T = {20, 3},
                  .S = {70, 30},
                  .heads = 2,
                  .causal = Causal::bottom_right,
                  .mask = true,
                  .dropout = 0.1f,
                  .gap = 3});
  list.push_back({.T = {12, 40}, .S = {12, 300}, .heads = 4, .key_width = 32, .value_width = 32, .dropout = 0.3f});
  list.push_back({.T = {1, 2, 1},
                  .S = {256, 140, 77},
                  .heads = 2,
                  .key_width = 64,
                  .value_width = 33,
                  .mask = true,
                  .dropout = 0.2f});
  list.push_back({.T = {40, 2}, .S = {90, 60}, .key_width = 64, .value_width = 64, .size = 30});  // rows done again
  return list;
}

double largest(const std::vector<double>& x) {
  double most = 0;
  for (double value : x)
    if (std::isfinite(value) && value != 777) most = std::max(most, std::abs(value));
  return most;
}

// Within `times` the error of the plain float version, or `ulps` units in the last place of the largest value or of the
// terms that cancel in it.
void expect_close(const std::vector<float>& fast, const std::vector<float>& plain, const std::vector<double>& exact,
                  double times, double ulps, double terms, const char* what) {
  const double floor = ulps * std::numeric_limits<float>::epsilon() * std::max(largest(exact), terms);
  EXPECT_LE(max_error(fast, exact), times * max_error(plain, exact) + floor) << what;
}

// The largest Σ_e |dO_ie O_ie|: dA and D are of this size where dS = A ∘ (dA − D) is small.
double largest_term(const AttentionProblem<double>& p) {
  double most = 0;
  for (int64_t i = 0; i < total(p.shape.T); i++)
    for (int64_t h = 0; h < p.shape.heads; h++) {
      const double *o = p.value_heads(p.out.data()).at(i, h), *g = p.value_heads(p.dout.data()).at(i, h);
      double sum = 0;
      for (int64_t e = 0; e < p.shape.value_width; e++) sum += std::abs(o[e] * g[e]);
      most = std::max(most, sum);
    }
  return most;
}

TEST(AttentionKernel, IsAsGoodAsPlainFloatOnEveryInstructionSet) {
  for (const AttentionShape& shape : shapes()) {
    AttentionProblem<double> exact(shape);
    AttentionProblem<float> plain(shape);
    exact.plain(), plain.plain();
    for (const std::string& isa : available_isas()) {
      force_isa(isa);
      SCOPED_TRACE(isa + ", T " + std::to_string(shape.T[0]) + ", S " + std::to_string(shape.S[0]) + ", widths " +
                   std::to_string(shape.key_width) + ", " + std::to_string(shape.value_width));
      AttentionProblem<float> fast(shape);
      fast.forward(), fast.backward();
      // Rounding a score of size s changes its weight by s units in the last place.
      const double ulps = 8 + largest(exact.lse), terms = exact.input().scale * largest_term(exact);
      expect_close(fast.out, plain.out, exact.out, 2, ulps, 0, "out");
      expect_close(fast.lse, plain.lse, exact.lse, 2, 8, 1, "lse");
      expect_close(fast.dq, plain.dq, exact.dq, 3, ulps, terms * largest(exact.k), "dq");
      expect_close(fast.dk, plain.dk, exact.dk, 3, ulps, terms * largest(exact.q), "dk");
      expect_close(fast.dv, plain.dv, exact.dv, 3, ulps, 0, "dv");
    }
  }
  force_isa(available_isas().front());
}

TEST(AttentionKernel, GivesTheSameBytesForAnyNumberOfThreads) {
  const int before = threads();
  for (const AttentionShape& shape :
       {AttentionShape{.T = {300}, .S = {300}, .heads = 3, .causal = Causal::bottom_right, .dropout = 0.1f},
        AttentionShape{.T = {9, 20, 4, 31}, .S = {8, 1, 40, 31}, .heads = 4, .mask = true}}) {
    std::vector<std::vector<float>> results;
    for (int count : {1, 3}) {
      set_threads(count);
      AttentionProblem<float> p(shape);
      p.forward(), p.backward();
      std::vector<float>& all = results.emplace_back();
      for (const auto* x : {&p.out, &p.lse, &p.dq, &p.dk, &p.dv}) all.insert(all.end(), x->begin(), x->end());
    }
    EXPECT_EQ(results[0], results[1]);
  }
  set_threads(before);
}

TEST(AttentionKernel, MayLeaveOutTheLogSumExp) {
  AttentionProblem<float> p({.T = {9, 2}, .S = {9, 5}});
  p.forward();
  const std::vector<float> out = p.out;
  attention<float>(p.input(), p.value_heads(p.out.data()), nullptr, p.arena);
  EXPECT_EQ(out, p.out);
}

TEST(AttentionKernel, GivesItsScratchMemoryBack) {
  AttentionProblem<float> p({.T = {9}, .S = {9}});
  p.forward(), p.backward();
  EXPECT_EQ(p.arena.used(), 0u);
}

}  // namespace
}  // namespace qkv::testing
