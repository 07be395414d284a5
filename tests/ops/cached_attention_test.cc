// Attention with a key-value cache against plain loops, for any location of the rows.
#include "ops/cached_attention.h"

#include <numeric>

#include "core/random.h"
#include "ops/reference/cached_attention_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::Padded;

struct Shape {
  int64_t heads, kv_heads, key_width, value_width;
  double softcap = 0;
  bool alibi = false;
  double scale = 0;    // 0 means 1 / √d_k
  int64_t reach = -1;  // of a random distance bias; −1: none
};

// Queries with 0 to 70 keys each, in random or contiguous rows.
template <class Real, class Op>
std::vector<Real> run(const Shape& shape, bool drawn, Op&& op) {
  const auto& [heads, kv_heads, key_width, value_width, softcap, alibi, scale, reach] = shape;
  constexpr int64_t N = 9, kCacheRows = 100;
  constexpr int32_t kKeys[N] = {0, 1, 3, 4, 5, 16, 17, 33, 70};
  Padded<Real> q({N, heads * key_width}, 1), cache({kCacheRows, kv_heads * (key_width + value_width)}, 2);
  Padded<Real> y({N, heads * value_width}, 3);
  std::vector<int32_t> rows, begin, end;
  Random random(1, Stream::sampling);
  for (const int32_t keys : kKeys) {
    begin.push_back(drawn ? static_cast<int32_t>(rows.size()) : 7);
    end.push_back(begin.back() + keys);
    for (int32_t j = 0; j < keys; j++) rows.push_back(static_cast<int32_t>(random.below(kCacheRows)));
  }
  const CachedKeys keys{drawn ? rows.data() : nullptr, begin.data(), end.data()};
  std::vector<Real> slopes;
  for (int64_t h = 0; h < heads; h++) slopes.push_back(Real(1) / static_cast<Real>(2 << h));
  std::vector<Real> distances;
  if (reach >= 0) distances = testing::normal<Real>(heads * (2 * reach + 1), 4);
  op(CachedAttention<Real>{q.view(),
                           cache.view(),
                           keys,
                           heads,
                           kv_heads,
                           key_width,
                           value_width,
                           static_cast<Real>(scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(key_width))),
                           static_cast<Real>(softcap),
                           alibi ? slopes.data() : nullptr,
                           {reach >= 0 ? distances.data() : nullptr, std::max<int64_t>(reach, 0)}},
     y.view());
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
      for (const Shape& s : {Shape{1, 1, 1, 1},
                             {8, 8, 64, 64},
                             {13, 13, 64, 64},
                             {3, 3, 17, 50},
                             {2, 2, 130, 5},
                             {8, 2, 64, 64},
                             {6, 3, 8, 20, 0.7},
                             {5, 5, 8, 8, 0, true},
                             {6, 1, 16, 9, 2, true},
                             {4, 4, 8, 8, 0, false, 0.75},
                             {5, 5, 8, 8, 0, false, 1, 6},
                             {6, 3, 8, 8, 2, true, 0, 100}}) {
        SCOPED_TRACE(::testing::Message()
                     << s.heads << " heads of " << s.key_width << ", " << s.value_width << (drawn ? " drawn" : ""));
        const std::vector<float> fast = run<float>(s, drawn, kernel);
        testing::expect_as_accurate(fast, run<float>(s, drawn, loops), run<double>(s, drawn, loops), 2);
        EXPECT_EQ(fast, testing::with_threads(3, [&] { return run<float>(s, drawn, kernel); }));
      }
  });
}

// A prompt: each token has the keys of the one before it and one more, in drawn rows.
std::vector<float> attend_to_prompt(const Shape& shape, int64_t first, int64_t last) {
  constexpr int64_t kTokens = 39;
  const auto& [heads, kv_heads, key_width, value_width, softcap, alibi, scale, reach] = shape;
  const std::vector<float> q = testing::normal<float>(kTokens * heads * key_width, 1);
  std::vector<float> cache = testing::normal<float>(kTokens * kv_heads * (key_width + value_width), 2);
  const int64_t width = kv_heads * (key_width + value_width);
  std::vector<int32_t> rows(kTokens), begin(kTokens), end(kTokens);
  for (int64_t n = 0; n < kTokens; n++) {
    rows[to_size(n)] = static_cast<int32_t>((n * 7 + 3) % kTokens);
    end[to_size(n)] = static_cast<int32_t>(n + 1);
  }
  std::fill_n(cache.begin() + rows.back() * width, width, NAN);  // spoils the last token only
  const std::vector<float> slopes(to_size(heads), 0.3f), bias = testing::normal<float>(heads * (2 * reach + 1), 4);
  std::vector<float> y(to_size((last - first) * heads * value_width));
  Arena arena;
  cached_attention<float>({{q.data() + first * heads * key_width, last - first, heads * key_width},
                           {cache.data(), kTokens, width},
                           {rows.data(), begin.data() + first, end.data() + first},
                           heads,
                           kv_heads,
                           key_width,
                           value_width,
                           0.3f,
                           static_cast<float>(softcap),
                           alibi ? slopes.data() : nullptr,
                           {reach > 0 ? bias.data() : nullptr, reach}},
                          {y.data(), last - first, heads * value_width}, arena);
  return y;
}

TEST(CachedAttention, TokensOfAPromptHaveTheSameBitsTogetherAndAlone) {
  testing::for_each_isa([] {
    for (const Shape& s : {Shape{3, 3, 64, 64, 0, false, 0, 0},
                           {6, 2, 17, 50, 0, false, 0, 0},
                           {5, 1, 8, 8, 2, true, 0, 5},
                           {4, 4, 80, 33, 0, true, 0, 0}}) {
      SCOPED_TRACE(::testing::Message() << s.heads << " heads of " << s.key_width << ", " << s.value_width);
      const std::vector<float> all = testing::with_threads(3, [&] { return attend_to_prompt(s, 0, 39); });
      std::vector<float> alone;
      for (int64_t n = 0; n < 39; n++) {
        const std::vector<float> y = attend_to_prompt(s, n, n + 1);
        alone.insert(alone.end(), y.begin(), y.end());
      }
      const auto spoiled = static_cast<std::ptrdiff_t>(38 * s.heads * s.value_width);
      EXPECT_TRUE(std::equal(all.begin(), all.begin() + spoiled, alone.begin()));
      EXPECT_TRUE(std::all_of(all.begin() + spoiled, all.end(), [](float y) { return std::isnan(y); }));
      EXPECT_TRUE(std::none_of(all.begin(), all.begin() + spoiled, [](float y) { return std::isnan(y); }));
    }
  });
}

}  // namespace
}  // namespace qkv
