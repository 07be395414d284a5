// The attention kernels against the float64 reference, on every instruction set and for any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/system/isa.h"
#include "core/system/threads.h"
#include "ops/cpu/attention/attention_workspace.h"
#include "tests/ops/attention_error.h"
#include "tests/support/sanitizers.h"

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
  list.push_back({.T = {40, 2}, .S = {90, 60}, .key_width = 64, .value_width = 64, .size = 30});  // raises the maximum
  list.push_back({.T = {40}, .S = {290}, .key_width = 50, .value_width = 18, .size = 30});        // has column tails
  list.push_back({.T = {290}, .S = {290}, .key_width = 50, .value_width = 50, .causal = Causal::bottom_right});
  list.push_back(
      {.T = {40, 7}, .S = {1100, 513}, .causal = Causal::bottom_right, .dropout = 0.1f});  // several key groups
  list.push_back({.T = {40}, .S = {1100}, .heads = 2, .key_width = 18, .size = 30, .window = {560, 0}});
  list.push_back({.T = {120, 3},
                  .S = {290, 20},
                  .heads = 4,
                  .key_width = 17,
                  .value_width = 36,
                  .mask = true,
                  .dropout = 0.1f,
                  .gap = 3,
                  .kv_heads = 2,
                  .window = {70, 20}});
  list.push_back({.T = {40, 2, 3}, .S = {90, 60, 1}, .heads = 6, .value_width = 20, .kv_heads = 2});
  list.push_back(
      {.T = {7, 7}, .S = {150, 150}, .heads = 4, .causal = Causal::bottom_right, .kv_heads = 1, .batched = true});
  for (const Window window : {Window{0, 0}, {5, -1}, {-1, 7}, {20, 3}, {70, 0}})
    for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
      list.push_back({.T = {150, 9}, .S = {140, 30}, .heads = 2, .causal = causal, .gap = 1, .window = window});
  for (int repeats = 0; repeats < 16; repeats++)
    list.push_back({.T = {21, 21},
                    .S = {90, 90},
                    .heads = 2,
                    .causal = repeats % 3 ? Causal::none : Causal::top_left,
                    .mask = true,
                    .allowed = repeats % 2 == 0,
                    .repeats = repeats,
                    .batched = repeats % 4 < 2});
  list.push_back({.T = {30, 5}, .S = {70, 80}, .heads = 2, .allowed = true});
  list.push_back({.T = {50}, .S = {1000}, .dropout = 0.1f, .allowed = true, .blocks = 5});
  for (const int64_t width : {1, 3, 5, 7}) list.push_back({.T = {30}, .S = {70}, .key_width = width});
  list.push_back({.T = {30, 3}, .S = {70, 80}, .heads = 3, .size = 3, .softcap = 2, .alibi = true});
  list.push_back({.T = {30, 3},
                  .S = {150, 80},
                  .heads = 2,
                  .causal = Causal::bottom_right,
                  .mask = true,
                  .dropout = 0.2f,
                  .kv_heads = 1,
                  .window = {40, 0},
                  .softcap = 5,
                  .alibi = true,
                  .allowed = true,
                  .repeats = kHeads});
  // Distances within the table and beyond it, tables shorter than a vector, queries and keys of different numbers.
  for (const int64_t reach : {0, 1, 3, 20, 128})
    for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
      list.push_back({.T = {150, 9, 1, 3},
                      .S = {140, 30, 20, 0},
                      .heads = 2,
                      .causal = causal,
                      .gap = 1,
                      .window = reach == 3 ? Window{40, 9} : Window{},
                      .reach = reach});
  list.push_back({.T = {1100}, .S = {1100}, .heads = 2, .key_width = 18, .reach = 900});  // several partial sums
  list.push_back({.T = {30, 3},
                  .S = {150, 80},
                  .heads = 4,
                  .causal = Causal::bottom_right,
                  .mask = true,
                  .dropout = 0.2f,
                  .gap = 3,
                  .kv_heads = 2,
                  .window = {60, 0},
                  .softcap = 5,
                  .alibi = true,
                  .allowed = true,
                  .repeats = kHeads,
                  .reach = 32});
  return list;
}

// How often a key, and an entry of the mask, is read: their gradients are sums of this many terms.
double sharers(const AttentionShape& shape, int axes) {
  double n = 1;
  if (axes & kSequences) n *= static_cast<double>(shape.T.size());
  if (axes & kHeads) n *= static_cast<double>(shape.heads);
  return n;
}

// The number of queries and keys that may share an entry of the distance bias. A distance within the table belongs to
// one pair in each row; all pairs of a short table may share an entry.
double pairs(const AttentionShape& shape) {
  double n = 0;
  for (size_t s = 0; s < shape.T.size(); s++) {
    const double T = shape.T[s], S = shape.S[s];
    n += shape.reach < std::max(T, S) - 1 ? T * S : std::min(T, S);
  }
  return n;
}

// The optimized build compares all shapes with plain loops. With sanitizers, which make these loops slow and check the
// memory that kernels use without a comparison, one in eight is compared.
constexpr size_t kEvery = kAddressSanitizer ? 8 : 1;

TEST(AttentionKernel, IsAsAccurateAsPlainFloatOnEveryInstructionSet) {
  const std::vector<AttentionShape> all = shapes();
  for (size_t i = 0; i < all.size(); i++) {
    const AttentionShape& shape = all[i];
    AttentionProblem<double> exact(shape);
    AttentionProblem<float> plain(shape);
    if (i % kEvery == 0) exact.plain(), plain.plain();
    for (const std::string& isa : available_isas()) {
      force_isa(isa);
      SCOPED_TRACE(isa + ", T " + std::to_string(shape.T[0]) + ", S " + std::to_string(shape.S[0]) + ", widths " +
                   std::to_string(shape.key_width) + ", " + std::to_string(shape.value_width) + ", repeats " +
                   std::to_string(shape.repeats) + ", window " + std::to_string(shape.window.left) + ", " +
                   std::to_string(shape.window.right));
      AttentionProblem<float> fast(shape);
      fast.forward(), fast.backward();
      if (i % kEvery > 0) continue;
      // Rounding a score of size s changes its weight by s units in the last place.
      const double ulps = 8 + largest(exact.lse), terms = exact.input().scale * largest_term(exact);
      expect_close(fast.out, plain.out, exact.out, 2, ulps, 0, "out");
      expect_close(fast.lse, plain.lse, exact.lse, 2, 8, 1, "lse");
      expect_close(fast.dq, plain.dq, exact.dq, 3, ulps, terms * largest(exact.k), "dq");
      expect_close(fast.dk, plain.dk, exact.dk, 3, ulps, terms * largest(exact.q), "dk");
      expect_close(fast.dv, plain.dv, exact.dv, 3, ulps, 0, "dv");
      expect_close(fast.dmask, plain.dmask, exact.dmask, 3, ulps, largest_term(exact) * sharers(shape, shape.repeats),
                   "dmask");
      // Each pair rounds by itself, so the error of their sum grows with the root of their number.
      expect_close(fast.ddistances, plain.ddistances, exact.ddistances, 3, ulps,
                   largest_term(exact) * std::sqrt(pairs(shape)), "ddistance_bias");
      for (int64_t s = 0; s < exact.input().sequences.count; s++)
        EXPECT_LE(
            max_error(fast.weights(s, 0), exact.weights(s, 0)),
            2 * max_error(plain.weights(s, 0), exact.weights(s, 0)) + ulps * std::numeric_limits<float>::epsilon());
    }
  }
  force_isa(available_isas().front());
}

TEST(AttentionKernel, UsesTheRequestedInstructionSet) {
  for (const std::string& isa : available_isas()) {
    force_isa(isa);
    EXPECT_EQ(forward_kernels().of_float.isa, isa);
    EXPECT_EQ(forward_kernels().of_bfloat16.isa, isa);
    EXPECT_EQ(backward_kernels().of_float.isa, isa);
    EXPECT_EQ(backward_kernels().of_bfloat16.isa, isa);
  }
  force_isa(available_isas().front());
}

TEST(AttentionKernel, UsesBfloat16ProductsIfTheMachineHasThem) {
  if (!has_bfloat16_products() || !std::ranges::count(available_isas(), "avx512"))
    GTEST_SKIP() << "this machine does not multiply bfloat16";
  force_isa("avx512");
  const auto forward = forward_kernels().of_bfloat16;
  const auto backward = backward_kernels().of_bfloat16;
  force_bfloat16_products(false);
  EXPECT_NE(forward.pairs, forward_kernels().of_bfloat16.pairs);
  EXPECT_NE(backward.part, backward_kernels().of_bfloat16.part);
  force_bfloat16_products(true);
  EXPECT_EQ(forward.pairs, forward_kernels().of_bfloat16.pairs);
}

// The criterion of FlashAttention's tests: at most twice the error of a plain bfloat16 version, three times for
// gradients.
TEST(AttentionKernel, IsAsAccurateAsPlainBfloat16) {
  const std::vector<AttentionShape> all = shapes();
  for (size_t i = 0; i < all.size(); i++) {
    AttentionShape shape = all[i];
    if (shape.S[0] < 60) continue;
    shape.rounded = true;
    AttentionProblem<double> exact(shape);
    AttentionProblem<bfloat16> plain(shape);
    if (i % kEvery == 0) exact.plain(), plain.plain();
    for (const std::string& isa : available_isas())
      for (const bool products : {false, true}) {
        force_isa(isa);
        force_bfloat16_products(products);
        if (products && !(isa == "avx512" && has_bfloat16_products())) continue;
        AttentionProblem<bfloat16> fast(shape);
        fast.forward(), fast.backward();
        if (i % kEvery > 0) continue;
        SCOPED_TRACE(isa + (products ? ", T " : ", widened, T ") + std::to_string(shape.T[0]) + ", S " +
                     std::to_string(shape.S[0]) + ", widths " + std::to_string(shape.key_width) + ", " +
                     std::to_string(shape.value_width));
        EXPECT_LE(max_error(fast.out, exact.out), 2 * max_error(plain.out, exact.out));
        EXPECT_LE(max_error(fast.dq, exact.dq), 3 * max_error(plain.dq, exact.dq));
        EXPECT_LE(max_error(fast.dk, exact.dk), 3 * max_error(plain.dk, exact.dk));
        EXPECT_LE(max_error(fast.dv, exact.dv), 3 * max_error(plain.dv, exact.dv));
      }
  }
  force_bfloat16_products(true);
  force_isa(available_isas().front());
}

TEST(AttentionKernel, GivesTheSameBytesForAnyNumberOfThreads) {
  const int before = threads();
  for (const AttentionShape& shape :
       {AttentionShape{.T = {300}, .S = {300}, .heads = 3, .causal = Causal::bottom_right, .dropout = 0.1f},
        AttentionShape{.T = {9, 20, 4, 31}, .S = {8, 1, 40, 31}, .heads = 4, .mask = true},
        AttentionShape{.T = {500, 130}, .S = {700, 10}, .heads = 2, .mask = true, .kv_heads = 1, .repeats = kHeads},
        AttentionShape{.T = {1100, 130}, .S = {1300, 10}, .heads = 2, .kv_heads = 1, .reach = 700},
        AttentionShape{.T = {9, 20, 31}, .S = {8, 40, 31}, .heads = 4, .softcap = 2, .reach = 5}}) {
    std::vector<std::vector<float>> results;
    for (int count : {1, 2, 3, 16}) {
      set_threads(count);
      AttentionProblem<float> p(shape);
      p.forward(), p.backward();
      std::vector<float>& all = results.emplace_back();
      for (const auto* x : {&p.out, &p.lse, &p.dq, &p.dk, &p.dv, &p.dmask, &p.ddistances})
        all.insert(all.end(), x->begin(), x->end());
    }
    for (const auto& other : results) EXPECT_EQ(results[0], other);
  }
  set_threads(before);
}

TEST(AttentionKernel, MayOmitTheLogSumExp) {
  AttentionProblem<float> p({.T = {9, 2}, .S = {9, 5}});
  p.forward();
  const std::vector<float> out = p.out;
  attention<float>(p.input(), p.queries(p.out.data(), 8), {}, p.workspace);
  EXPECT_EQ(out, p.out);
}

TEST(AttentionKernel, WeightsWithoutKeysReadNothing) {
  for (const int32_t T : {2, 40}) {  // by rows, and by tiles
    const AttentionProblem<float> p({.T = {T}, .S = {0}});
    EXPECT_NO_THROW(attention_weights<float>(p.input(), {}, {0, 0, 0, T}, nullptr));
  }
}

TEST(AttentionKernel, NeedsLittleMemoryForALongSequence) {
  AttentionInput<float> in;
  in.key_width = in.value_width = 64;
  in.sequences = {1, nullptr, nullptr, nullptr, nullptr, 65536, 65536};
  const int before = threads();
  for (int count : {1, 2}) {
    set_threads(count);
    EXPECT_LE(attention_workspace(in), size_t{64} << 20);
    EXPECT_LE(attention_backward_workspace(in), size_t{64} << 20);
  }
  set_threads(before);
}

}  // namespace
}  // namespace qkv::testing
