// The best next tokens equal those of the full logits and do not depend on other rows.
#include "ops/next_tokens.h"

#include <numeric>

#include "core/to_size.h"
#include "ops/softcap.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::normal;

struct Result {
  std::vector<float> logits, lse, lse_seen;
  std::vector<int32_t> tokens;
  std::vector<float> hidden_logits;
  bool operator==(const Result&) const = default;
};

struct Problem {
  int64_t N, in, V, k;
  std::vector<int32_t> hidden = {};
  float cap = 0;
  std::vector<float> x = normal<float>(N * in, 1), w = normal<float>(V * in, 2), b = normal<float>(V, 3);

  Result next(int64_t begin, int64_t end) const {
    const int64_t rows = end - begin;
    Result r{std::vector<float>(to_size(rows * k)),
             std::vector<float>(to_size(rows)),
             std::vector<float>(to_size(rows)),
             std::vector<int32_t>(to_size(rows * k)),
             {}};
    r.hidden_logits.resize(to_size(rows * std::ssize(hidden)));
    Arena arena;
    next_tokens({x.data() + begin * in, rows, in}, Matrix<const float>(w.data(), V, in), b.data(), hidden,
                {{r.logits.data(), rows, k},
                 {r.tokens.data(), rows, k},
                 {r.hidden_logits.data(), rows, std::ssize(hidden)},
                 r.lse.data(),
                 r.lse_seen.data()},
                arena, cap);
    return r;
  }
  std::vector<float> all_logits() const {
    std::vector<float> y(to_size(N * V));
    Arena arena;
    row_linear<float>({x.data(), N, in}, {w.data(), V, in}, b.data(), {y.data(), N, V}, arena);
    if (cap > 0) softcap<float>({y.data(), N, V}, cap);
    return y;
  }
};

TEST(NextTokens, AreTheBestOfAllLogits) {
  testing::for_each_isa([] {
    for (const int64_t V : {1, 5, 128, 300}) {
      Problem p{50, 20, V, 8, {0}, V == 5 ? 3.0f : 0.0f};
      if (V > 100) std::copy_n(&p.w[20], 20, &p.w[99 * 20]), p.b[99] = p.b[1];  // tokens 99 and 1 tie
      const Result found = p.next(0, p.N);
      const std::vector<float> logits = p.all_logits();
      for (int64_t n = 0; n < p.N; n++) {
        const float* row = logits.data() + n * V;
        std::vector<int32_t> order(to_size(V));
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, std::greater<>(), [&](int32_t v) { return row[v]; });
        std::erase(order, 0);
        double sum = 0;
        for (const int32_t v : order) sum += std::exp(static_cast<double>(row[v]));
        const float seen = found.lse_seen[to_size(n)], all = found.lse[to_size(n)];
        EXPECT_NEAR(all, std::log(sum + std::exp(static_cast<double>(row[0]))), 1e-5);  // exp in float: 2^-23 each
        EXPECT_EQ(found.hidden_logits[to_size(n)], row[0]);
        if (V > 1) {
          EXPECT_NEAR(seen, std::log(sum), 1e-5);
        }
        for (int64_t i = 0; i < p.k; i++) {
          const size_t at = to_size(n * p.k + i);
          if (i >= V - 1) {
            EXPECT_EQ(found.tokens[at], -1);
          } else {
            EXPECT_EQ(found.tokens[at], order[to_size(i)]);
            EXPECT_EQ(found.logits[at], row[order[to_size(i)]]);
          }
        }
      }
    }
  });
}

TEST(NextTokens, DoNotDependOnOtherRowsOrTheNumberOfThreads) {
  const Problem p{70, 24, 1000, 10};
  const Result all = testing::with_threads(3, [&] { return p.next(0, p.N); });
  EXPECT_EQ(all, testing::with_threads(1, [&] { return p.next(0, p.N); }));
  for (const int64_t n : {0, 33, 69}) {
    const Result one = p.next(n, n + 1);
    EXPECT_EQ(one.lse[0], all.lse[to_size(n)]);
    EXPECT_TRUE(std::equal(one.tokens.begin(), one.tokens.end(), all.tokens.begin() + n * p.k));
  }
}

TEST(NextTokens, NanMakesTheLogSumExpOfItsRowNan) {
  Problem p{3, 4, 40, 2};
  p.x[5] = NAN;
  const Result found = p.next(0, 3);
  for (size_t n = 0; n < 3; n++) EXPECT_EQ(std::isnan(found.lse[n]), n == 1);
}

}  // namespace
}  // namespace qkv
