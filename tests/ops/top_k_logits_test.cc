// The best logits of a row equal those of all logits that are not hidden, and do not depend on other rows.
#include "ops/top_k_logits.h"

#include <numeric>

#include "core/to_size.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::normal;

using Result = std::vector<std::vector<ScoredToken>>;

struct Problem {
  int64_t N, in, V, k;
  std::vector<std::vector<int32_t>> hidden = {};
  std::vector<float> limits = {};
  std::vector<float> x = normal<float>(N * in, 1), w = normal<float>(V * in, 2), b = normal<float>(V, 3);

  Result best(int64_t begin, int64_t end) const {
    const int64_t rows = end - begin;
    std::vector<float> logits(to_size(rows * k));
    std::vector<int32_t> tokens(logits.size());
    std::vector<std::span<const int32_t>> hidden_of_rows;
    for (int64_t n = begin; n < end && !hidden.empty(); n++) hidden_of_rows.emplace_back(hidden[to_size(n)]);
    const auto some =
        std::span(limits).subspan(limits.empty() ? 0 : to_size(begin), limits.empty() ? 0 : to_size(rows));
    Arena arena;
    top_k_logits({x.data() + begin * in, rows, in}, Matrix<const float>(w.data(), V, in), b.data(),
                 {hidden_of_rows, some}, {{logits.data(), rows, k}, {tokens.data(), rows, k}}, arena);
    EXPECT_EQ(arena.used(), 0u);
    Result result(to_size(rows));
    for (size_t i = 0; i < tokens.size(); i++) result[i / to_size(k)].push_back({logits[i], tokens[i]});
    return result;
  }

  // Computes the expected result by sorting all logits.
  Result expected() const {
    std::vector<float> y(to_size(N * V));
    Arena arena;
    row_linear({x.data(), N, in}, Matrix<const float>(w.data(), V, in), b.data(), {y.data(), N, V}, arena);
    Result result;
    for (int64_t n = 0; n < N; n++) {
      std::vector<ScoredToken> all;
      for (int64_t v = 0; v < V; v++) all.push_back({y[to_size(n * V + v)], static_cast<int32_t>(v)});
      std::erase_if(all, [&](ScoredToken t) {
        return std::isnan(t.logit) || (!limits.empty() && t.logit > limits[to_size(n)]) ||
               (!hidden.empty() && std::ranges::binary_search(hidden[to_size(n)], t.token));
      });
      std::ranges::sort(all, [](ScoredToken p, ScoredToken q) { return p < q; });
      all.resize(to_size(k), {-HUGE_VALF, -1});
      result.push_back(std::move(all));
    }
    return result;
  }
};

void expect_same(const Result& found, const Result& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t n = 0; n < found.size(); n++)
    for (size_t i = 0; i < found[n].size(); i++) {
      EXPECT_EQ(found[n][i].token, wanted[n][i].token) << "row " << n << ", place " << i;
      EXPECT_EQ(found[n][i].logit, wanted[n][i].logit) << "row " << n << ", place " << i;
    }
}

TEST(TopKLogits, AreTheBestOfAllThatAreNotHidden) {
  testing::for_each_isa([] {
    for (const auto& [V, k] : {std::pair{1, 3}, {5, 5}, {128, 1}, {300, 40}, {1000, 1000}}) {
      Problem p{6, 20, V, k, {{}, {0}, {}, {}, {}, {}}};
      if (V >= 128) {
        std::copy_n(&p.w[20], 20, &p.w[99 * 20]), p.b[99] = p.b[1];  // tokens 99 and 1 tie
        for (int32_t v = 0; v < V; v += 3) p.hidden[2].push_back(v);
        p.hidden[3] = {0, 127};
      }
      for (int32_t v = 0; v < V; v++) p.hidden[4].push_back(v);
      expect_same(p.best(0, p.N), p.expected());
      p.hidden.clear();
      expect_same(p.best(0, p.N), p.expected());
    }
  });
}

TEST(TopKLogits, DoNotDependOnOtherRowsOrTheNumberOfThreads) {
  Problem p{70, 24, 1000, 10, {}};
  p.hidden.resize(70, {4, 500});
  const Result all = testing::with_threads(3, [&] { return p.best(0, p.N); });
  expect_same(all, testing::with_threads(1, [&] { return p.best(0, p.N); }));
  for (const int64_t n : {0, 33, 69}) expect_same(p.best(n, n + 1), {all[to_size(n)]});
}

TEST(TopKLogits, AreAtMostTheLimitOfTheirRow) {
  testing::for_each_isa([] {
    Problem p{9, 20, 300, 5, {}};
    const Result all = p.expected();
    for (size_t n = 0; n < 9; n++) p.limits.push_back(all[n][n % 5].logit);  // which is not left out itself
    p.limits[8] = -HUGE_VALF;
    const Result found = p.best(0, p.N);
    for (size_t n = 0; n < 8; n++) EXPECT_EQ(found[n][0].token, all[n][n % 5].token);
    EXPECT_EQ(found[8][0].token, -1);
    expect_same(found, p.expected());
    p.hidden.resize(9, {4, 200});
    expect_same(p.best(0, p.N), p.expected());
    expect_same(p.best(3, 5), {p.expected()[3], p.expected()[4]});
  });
}

TEST(TopKLogits, ExcludeNan) {
  Problem p{2, 4, 40, 3};
  p.b[7] = NAN;
  p.b[8] = -HUGE_VALF;
  expect_same(p.best(0, 2), p.expected());
  p.x[5] = NAN;
  const Result found = p.best(1, 2);
  for (const ScoredToken& t : found.front()) EXPECT_EQ(t.token, -1);
}

TEST(TopKLogits, WithInt8WeightsAgreeWithTheProduct) {
  const Problem p{9, 24, 300, 12};
  std::vector<int8_t> values(p.w.size());
  std::vector<float> scale(300), y(9 * 300), logits(9 * 12);
  std::vector<int32_t> sums(300), tokens(9 * 12);
  quantize_rows({p.w.data(), 300, 24}, values.data(), scale.data());
  for (size_t i = 0; i < values.size(); i++) sums[i / 24] += values[i];
  const Int8Matrix W{{values.data(), 300, 24}, scale.data(), sums.data()};
  Arena arena;
  top_k_logits({p.x.data(), 9, 24}, W, p.b.data(), {}, {{logits.data(), 9, 12}, {tokens.data(), 9, 12}}, arena);
  row_linear({p.x.data(), 9, 24}, W, p.b.data(), {y.data(), 9, 300}, arena);
  for (size_t n = 0; n < 9; n++) {
    std::vector<ScoredToken> all;
    for (size_t v = 0; v < 300; v++) all.push_back({y[n * 300 + v], static_cast<int32_t>(v)});
    std::ranges::sort(all, [](ScoredToken a, ScoredToken b) { return a < b; });
    for (size_t i = 0; i < 12; i++) EXPECT_EQ(tokens[n * 12 + i], all[i].token);
  }
}

}  // namespace
}  // namespace qkv
