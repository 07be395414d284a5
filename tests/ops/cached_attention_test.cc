// Attention over rows of a cache: against plain loops, wherever the rows lie.
#include "ops/cached_attention.h"

#include <numeric>

#include "core/random.h"
#include "ops/cached_attention_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::Padded;

// Queries with 0 to 70 keys each, in rows that are drawn or in neighbours.
template <class Real, class Op>
std::vector<Real> run(int64_t heads, int64_t key_width, int64_t value_width, bool drawn, Op&& op) {
  constexpr int64_t N = 9, kCacheRows = 100;
  constexpr int32_t kKeys[N] = {0, 1, 3, 4, 5, 16, 17, 33, 70};
  Padded<Real> q({N, heads * key_width}, 1), cache({kCacheRows, heads * (key_width + value_width)}, 2);
  Padded<Real> y({N, heads * value_width}, 3);
  std::vector<int32_t> rows, begin, end;
  Random random(1, Stream::sampling);
  for (const int32_t keys : kKeys) {
    begin.push_back(drawn ? static_cast<int32_t>(rows.size()) : 7);
    end.push_back(begin.back() + keys);
    for (int32_t j = 0; j < keys; j++) rows.push_back(static_cast<int32_t>(random.below(kCacheRows)));
  }
  const CachedKeys keys{drawn ? rows.data() : nullptr, begin.data(), end.data()};
  op(CachedAttention<Real>{q.view(), cache.view(), keys, heads, key_width, value_width}, y.view());
  y.expect_gaps_untouched();
  return y.values();
}

TEST(CachedAttention, IsAsAccurateAsPlainLoops) {
  const auto loops = [](const auto& in, auto y) { reference::cached_attention(in, y); };
  const auto kernel = [](const CachedAttention<float>& in, Matrix<float> y) {
    Arena arena;
    cached_attention(in, y, arena);
  };
  testing::for_each_isa([&] {
    for (const bool drawn : {false, true})
      for (const auto& [heads, dk, dv] : {std::tuple{1, 1, 1}, {8, 64, 64}, {3, 17, 50}, {2, 130, 5}}) {
        SCOPED_TRACE(::testing::Message() << heads << " heads of " << dk << ", " << dv << (drawn ? " drawn" : ""));
        const std::vector<float> fast = run<float>(heads, dk, dv, drawn, kernel);
        testing::expect_as_accurate(fast, run<float>(heads, dk, dv, drawn, loops),
                                    run<double>(heads, dk, dv, drawn, loops), 2);
        EXPECT_EQ(fast, testing::with_threads(3, [&] { return run<float>(heads, dk, dv, drawn, kernel); }));
      }
  });
}

}  // namespace
}  // namespace qkv
