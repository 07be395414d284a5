// The shapes and options that the tests of FlashAttention and PyTorch cover. Some rows and keys of each problem are
// compared in float64, in plain float32, and as computed by the kernels.
#include <gtest/gtest.h>

#include "tests/ops/attention_error.h"
#include "tests/support/sanitizers.h"

namespace qkv::testing {
namespace {

// Results of the reference for sampled queries and keys: out, dq, dk, dv.
template <class Real>
struct Sample {
  std::vector<Real> out, dq, dk, dv;
};

// Every `step`-th row of one head of the first sequence, taken from p or computed by the reference.
template <class Real>
Sample<Real> sample(AttentionProblem<Real>& p, bool compute, int64_t step) {
  const AttentionInput<Real> in = p.input();
  const auto b = p.backward_input(in);
  const AttentionGradients<Real> to = p.gradients();
  const int64_t h = in.heads - 1, kv = kv_head(in, h), d = in.key_width, w = in.value_width;
  Sample<Real> all;
  const auto append = [](std::vector<Real>& rows, const Real* row, int64_t n) {
    rows.insert(rows.end(), row, row + n);
  };
  for (int64_t i = 0; i < p.shape.T[0]; i += step) {
    Real* out = p.queries(p.out.data(), w).at(0, i, h);
    if (compute) reference::attend_row(in, 0, h, i, reference::log_sum_exp(in, 0, h, i), out);
    if (compute) reference::query_gradient(b, 0, h, i, to.dq.at(0, i, h));
    append(all.out, out, w), append(all.dq, to.dq.at(0, i, h), d);
  }
  for (int64_t j = 0; j < p.shape.S[0]; j += 3 * step) {
    if (compute) reference::key_gradients(b, 0, kv, j, to.dk.at(0, j, kv), to.dv.at(0, j, kv));
    append(all.dk, to.dk.at(0, j, kv), d), append(all.dv, to.dv.at(0, j, kv), w);
  }
  return all;
}

// Sanitizers make a problem thirty times slower, so they run only the smaller ones.
constexpr int64_t kMostPairs = kAddressSanitizer ? 60000 : INT64_MAX;

void expect_good(const AttentionShape& shape) {
  if (int64_t{shape.T[0]} * shape.S[0] > kMostPairs) return;
  SCOPED_TRACE("T " + std::to_string(shape.T[0]) + ", S " + std::to_string(shape.S[0]) + ", width " +
               std::to_string(shape.key_width));
  AttentionProblem<float> fast(shape);
  fast.forward(), fast.backward();
  // Both references start backward from the same out and lse.
  AttentionProblem<double> exact(fast);
  AttentionProblem<float> plain = fast;
  const int64_t step = std::max<int64_t>(1, shape.T[0] / 6);
  const auto is = sample(fast, false, step), naive = sample(plain, true, step);
  const auto should = sample(exact, true, step);
  const double ulps = 8 + largest(exact.lse), terms = exact.input().scale * largest_term(exact);
  expect_close(is.out, naive.out, should.out, 2, ulps, 0, "out");
  expect_close(is.dq, naive.dq, should.dq, 3, ulps, terms * largest(exact.k), "dq");
  expect_close(is.dk, naive.dk, should.dk, 3, ulps, terms * largest(exact.q), "dk");
  expect_close(is.dv, naive.dv, should.dv, 3, ulps, 0, "dv");
}

TEST(AttentionGrid, AgreesOnTheGridOfFlashAttention) {
  const int64_t widths[] = {32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256};
  const std::pair<int32_t, int32_t> lengths[] = {{113, 203}, {128, 217},   {113, 211},   {108, 256}, {256, 512},
                                                 {512, 256}, {1023, 1024}, {1024, 1023}, {1, 239},   {239, 1},
                                                 {3, 799},   {799, 3},     {127, 512},   {512, 127}, {127, 513},
                                                 {513, 127}, {1, 339},     {64, 800},    {16, 20000}};
  int n = 0;
  for (const auto& [T, S] : lengths)
    for (int option = n % 2; option < 7; option += 2, n++) {
      AttentionShape shape{.T = {T}, .S = {S}, .heads = 2, .key_width = widths[n % 12], .value_width = widths[n % 12]};
      shape.causal = static_cast<Causal>(n % 3);
      if (option == 1) shape.window = {T / 3, S / 5};
      if (option == 2) shape.alibi = true;
      if (option == 3) shape.dropout = 0.17f;
      if (option == 4) shape.softcap = 50;
      if (option == 5) shape.kv_heads = 1;
      if (option == 6) shape.reach = 40;
      expect_good(shape);
    }
}

TEST(AttentionGrid, AgreesOnTheGridOfPyTorch) {
  for (const int32_t T : {267, 1030})
    for (const int64_t heads : {1, 3})
      for (const int64_t width : {8, 16})
        for (const Causal causal : {Causal::none, Causal::top_left})
          expect_good({.T = {T, T},
                       .S = {T, T},
                       .heads = heads,
                       .key_width = width,
                       .value_width = width,
                       .causal = causal,
                       .batched = true});
  for (int repeats = 0; repeats < 16; repeats++)
    for (const bool boolean : {false, true})
      expect_good({.T = {267, 267},
                   .S = {514, 514},
                   .heads = 3,
                   .mask = !boolean,
                   .allowed = boolean,
                   .repeats = repeats,
                   .batched = true});
}

}  // namespace
}  // namespace qkv::testing
