// The counts of logit_ranks equal those of all logits, and its best tokens those of top_k_logits.
#include "ops/logit_ranks.h"

#include "core/to_size.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::normal;

struct Problem {
  int64_t N, in, V, k, T;
  std::vector<std::vector<int32_t>> hidden = std::vector<std::vector<int32_t>>(to_size(N));
  std::vector<std::vector<ScoredToken>> added = std::vector<std::vector<ScoredToken>>(to_size(N));
  std::vector<float> x = normal<float>(N * in, 1), w = normal<float>(V * in, 2), b = normal<float>(V, 3);
  std::vector<float> thresholds = normal<float>(N * T, 4);

  Matrix<const float> X() const { return {x.data(), N, in}; }
  Matrix<const float> W() const { return {w.data(), V, in}; }

  // All logits with the changes.
  std::vector<float> logits() const {
    std::vector<float> y(to_size(N * V));
    Arena arena;
    row_linear(X(), W(), b.data(), {y.data(), N, V}, arena);
    for (size_t n = 0; n < to_size(N); n++) {
      for (const auto& [value, token] : added[n]) y[n * to_size(V) + to_size(token)] += value;
      for (const int32_t token : hidden[n]) y[n * to_size(V) + to_size(token)] = -HUGE_VALF;
    }
    return y;
  }

  struct Result {
    std::vector<int64_t> not_below;
    std::vector<int32_t> tokens;
    std::vector<float> logits;
    bool operator==(const Result&) const = default;
  };

  Result ranks() const {
    Result result{std::vector<int64_t>(to_size(N * T), -1), std::vector<int32_t>(to_size(N * k)),
                  std::vector<float>(to_size(N * k))};
    const std::vector<std::span<const int32_t>> hidden_of(hidden.begin(), hidden.end());
    const std::vector<std::span<const ScoredToken>> added_of(added.begin(), added.end());
    Arena arena;
    logit_ranks(X(), W(), b.data(), {hidden_of, added_of},
                {{thresholds.data(), N, T},
                 {result.not_below.data(), N, T},
                 {{result.logits.data(), N, k}, {result.tokens.data(), N, k}}},
                arena);
    EXPECT_EQ(arena.used(), 0u);
    return result;
  }

  Result expected() const {
    const std::vector<float> y = logits();
    Result result;
    for (int64_t n = 0; n < N; n++) {
      const std::span row = std::span(y).subspan(to_size(n * V), to_size(V));
      for (int64_t t = 0; t < T; t++) {
        const float least = thresholds[to_size(n * T + t)];
        result.not_below.push_back(std::ranges::count_if(row, [&](float logit) { return !(logit < least); }));
      }
      std::vector<ScoredToken> all;
      for (size_t v = 0; v < row.size(); v++)
        if (row[v] > -HUGE_VALF) all.push_back({row[v], static_cast<int32_t>(v)});
      std::ranges::sort(all, [](ScoredToken p, ScoredToken q) { return p < q; });
      all.resize(to_size(k), {-HUGE_VALF, -1});
      for (const auto& [logit, token] : all) result.logits.push_back(logit), result.tokens.push_back(token);
    }
    return result;
  }
};

TEST(LogitRanks, CountAllLogitsThatAreNotBelow) {
  testing::for_each_isa([] {
    for (const int64_t V : {1, 7, 128, 300, 1001}) {
      Problem p{6, 20, V, 5, 3};
      for (int32_t v = 0; v < V; v += 2) p.hidden[1].push_back(v);
      for (int32_t v = 0; v < V; v += 3) p.added[1].push_back({1.5f, v}), p.added[2].push_back({-2.f, v});
      const std::vector<float> y = p.logits();
      p.thresholds[6] = y[to_size(2 * V + V / 2)];  // ties with a logit
      p.thresholds[7] = NAN;
      p.thresholds[8] = HUGE_VALF;
      p.thresholds[9] = -HUGE_VALF;
      EXPECT_EQ(p.ranks(), p.expected()) << V;
      EXPECT_EQ(p.ranks().not_below[7], V);
      EXPECT_EQ(p.ranks().not_below[8], 0);
    }
  });
}

TEST(LogitRanks, CountNan) {
  Problem p{5, 4, 200, 3, 1};
  p.b[7] = NAN;
  p.b[8] = -HUGE_VALF;
  EXPECT_EQ(p.ranks(), p.expected());
  p.thresholds.assign(5, HUGE_VALF);
  EXPECT_EQ(p.ranks().not_below, std::vector<int64_t>(5, 1));
}

TEST(LogitRanks, DoNotDependOnTheNumberOfThreads) {
  Problem p{200, 24, 1000, 10, 2};
  p.hidden.assign(200, {4, 500});
  const auto one = testing::with_threads(1, [&] { return p.ranks(); });
  EXPECT_EQ(one, testing::with_threads(3, [&] { return p.ranks(); }));
  EXPECT_EQ(one, p.expected());
}

}  // namespace
}  // namespace qkv
