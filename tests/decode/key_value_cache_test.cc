// Texts in the cache of keys and values: shared prefixes give the same bits as reading them again, and memory stays
// bounded.
#include "decode/engine/key_value_cache.h"

#include <gtest/gtest.h>

#include "tests/decode/language_models.h"
#include "tests/support/models.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;

class CachedTexts : public ::testing::Test {
 protected:
  using Text = KeyValueCache::Text;

  CachedTexts() : model_(testing::language_config(40, 700)) { testing::randomize(model_.parameters(), 3); }

  static Ids ids(int64_t count, uint64_t seed = 1) {
    Random random(seed, Stream::test);
    return testing::random_tokens(count, 40, random);
  }
  // Returns the logits after those of these texts of which a step reads all tokens.
  std::vector<std::vector<float>> step(KeyValueCache& cache, const std::vector<Text*>& texts) {
    const Arena::Scope scope(arena_);
    Context context{.arena = arena_, .inference = true};
    cache.begin_step();
    for (Text* text : texts) cache.add(*text);
    cache.end_step();
    std::vector<RowRange> last;
    for (const Text* text : texts)
      if (text->last >= 0) last.push_back({text->last, text->last + 1});
    const NextRequest request{last};
    const std::span<const NextRequest> requests(&request, last.empty() ? 0 : 1);
    std::vector<std::vector<float>> rows;
    for (const NextResult& next : cache.models().front().step(cache.step(), cache.layers(0), requests, context))
      for (int64_t n = 0; n < next.logits.rows; n++)
        rows.emplace_back(next.logits.row(n), next.logits.row(n) + next.logits.cols);
    return rows;
  }
  std::vector<float> alone(const Ids& ids) {
    KeyValueCache cache(model_, 0);
    Text& text = cache.open(ids);
    std::vector<std::vector<float>> rows;
    while (rows.empty()) rows = step(cache, {&text});
    return rows.front();
  }
  int64_t bytes(int64_t rows) const { return rows * 2 * 2 * (10 + 7) * 4; }  // two layers, two heads

  Transformer<float> model_;
  Arena arena_;
};

TEST_F(CachedTexts, TextsOfOneStepShareTheirPrefix) {
  Ids other = ids(30);
  other.resize(20);
  other.insert(other.end(), {3, 4, 3});
  ASSERT_NE(other[20], ids(30)[20]);
  KeyValueCache cache(model_, 0);
  Text &a = cache.open(ids(30)), &b = cache.open(other), &c = cache.open(ids(30)), &d = cache.open(ids(5));
  EXPECT_TRUE(std::equal(a.rows.begin(), a.rows.begin() + 20, b.rows.begin()));
  EXPECT_NE(a.rows[20], b.rows[20]);
  EXPECT_TRUE(std::equal(a.rows.begin(), a.rows.begin() + 29, c.rows.begin()));
  EXPECT_NE(a.rows[29], c.rows[29]);
  EXPECT_TRUE(std::equal(a.rows.begin(), a.rows.begin() + 4, d.rows.begin()));
  EXPECT_NE(a.rows[4], d.rows[4]);
  const auto h = step(cache, {&a, &b, &c, &d});
  ASSERT_EQ(h.size(), 4u);
  EXPECT_EQ(h[0], alone(ids(30)));
  EXPECT_EQ(h[1], alone(other));
  EXPECT_EQ(h[2], h[0]);
  EXPECT_EQ(h[3], alone(ids(5)));
}

TEST_F(CachedTexts, TextReusesThePrefixOfOpenAndClosedTexts) {
  KeyValueCache cache(model_, bytes(128));
  Text& a = cache.open(ids(10));
  step(cache, {&a});
  cache.append(a, ids(12)[10]);
  Text& b = cache.open(ids(12));
  EXPECT_EQ(b.rows[10], a.rows[10]);
  const auto h = step(cache, {&a, &b});
  ASSERT_EQ(h.size(), 2u);
  EXPECT_EQ(h[0], alone(ids(11)));
  EXPECT_EQ(h[1], alone(ids(12)));
  cache.append(a, 5);  // this token is not read
  cache.close(a);
  cache.close(b);
  EXPECT_EQ(cache.known(ids(40)), 12u);
  EXPECT_EQ(step(cache, {&cache.open(ids(40))}).front(), alone(ids(40)));
}

TEST_F(CachedTexts, LongTextsAreReadInSeveralSteps) {
  const Ids all = ids(650);
  KeyValueCache cache(model_, 0);
  Text &a = cache.open(all), &b = cache.open(Ids(all.begin(), all.begin() + 600));
  EXPECT_TRUE(step(cache, {&a, &b}).empty());
  EXPECT_EQ(a.read, 512u);
  EXPECT_EQ(b.read, 512u);
  EXPECT_EQ(step(cache, {&a, &b}).size(), 2u);
  KeyValueCache other(model_, bytes(704));
  for (const size_t end : {300u, 301u, 500u}) {
    Text& text = other.open(Ids(all.begin(), all.begin() + static_cast<int64_t>(end)));
    const auto h = step(other, {&text});
    ASSERT_EQ(h.size(), 1u);
    EXPECT_EQ(h.front(), alone(Ids(all.begin(), all.begin() + static_cast<int64_t>(end))));
    other.close(text);
  }
}

TEST_F(CachedTexts, LongPromptDoesNotHoldUpTextsThatGrow) {
  KeyValueCache cache(model_, 0);
  Text &prompt = cache.open(ids(650)), &a = cache.open(ids(3, 2)), &b = cache.open(ids(4, 3));
  EXPECT_TRUE(step(cache, {&prompt, &a, &b}).empty());  // the prompt was added first
  EXPECT_EQ(prompt.read, 512u);
  EXPECT_EQ(a.read, 0u);
  EXPECT_EQ(step(cache, {&prompt, &a, &b}).size(), 3u);
  KeyValueCache other(model_, 0);
  Text &c = other.open(ids(3, 2)), &d = other.open(ids(4, 3));
  step(other, {&c, &d});
  other.append(c, 7), other.append(d, 8);
  const auto h = step(other, {&other.open(ids(650)), &c, &d});  // in front of the prompt
  ASSERT_EQ(h.size(), 2u);
  Ids longer = ids(4, 3);
  longer.push_back(8);
  EXPECT_EQ(h[1], alone(longer));
  EXPECT_EQ(b.read, 4u);
}

// A token at place p takes d + p, where d is the model's width.
TEST_F(CachedTexts, ALaterPartOfAPromptIsShorter) {
  KeyValueCache cache(model_, 0);
  Text& prompt = cache.open(ids(900));
  step(cache, {&prompt});
  EXPECT_EQ(prompt.read, 512u);
  step(cache, {&prompt});
  const int64_t d = model_.config().d_model, most = 512 * d + 512 * 511 / 2;
  int64_t work = 0, read = 512;
  while (work < most) work += d + read++;
  EXPECT_EQ(std::ssize(prompt.ids), 900);
  EXPECT_EQ(static_cast<int64_t>(prompt.read), read);
  EXPECT_LT(read, 512 + 300);
}

TEST_F(CachedTexts, TextThatMissedAStepContinuesWhereItWas) {
  KeyValueCache cache(model_, 0);
  Text& a = cache.open(ids(20));
  step(cache, {&a});
  cache.append(a, ids(21)[20]);
  Text& b = cache.open(ids(30));  // reads the last token of a, too
  EXPECT_EQ(step(cache, {&b}).front(), alone(ids(30)));
  EXPECT_EQ(a.read, 20u);
  Text& c = cache.open(ids(5, 2));
  EXPECT_EQ(step(cache, {&a, &c})[0], alone(ids(21)));
  EXPECT_EQ(c.read, 5u);
}

TEST_F(CachedTexts, PrefixesAreSharedWithinOneSalt) {
  KeyValueCache cache(model_, bytes(128));
  Text &a = cache.open(ids(10), "a"), &b = cache.open(ids(12), "a"), &c = cache.open(ids(12), "b");
  EXPECT_EQ(b.shared, 10u);
  EXPECT_EQ(c.shared, 0u);
  const auto h = step(cache, {&a, &b, &c});
  EXPECT_EQ(h[1], h[2]);
  cache.close(a);
  EXPECT_EQ(cache.known(ids(10), "a"), 10u);
  EXPECT_EQ(cache.known(ids(10)), 0u);
}

TEST_F(CachedTexts, KeepsTheMostRecentTextsWithinTheLimit) {
  KeyValueCache cache(model_, bytes(128));
  for (uint64_t seed = 1; seed <= 9; seed++) {
    Text& text = cache.open(ids(40, seed));
    EXPECT_EQ(step(cache, {&text}).front(), alone(ids(40, seed)));
    cache.close(text);
  }
  EXPECT_EQ(cache.bytes(), bytes(128));
  EXPECT_EQ(cache.known(ids(40, 9)), 40u);
  EXPECT_EQ(cache.known(ids(40, 8)), 40u);
  EXPECT_LT(cache.known(ids(40, 1)), 40u);
  std::vector<Text*> open;
  for (uint64_t seed = 1; seed <= 9; seed++) open.push_back(&cache.open(ids(40, seed)));
  EXPECT_EQ(step(cache, open).size(), 9u);
  EXPECT_EQ(cache.bytes(), bytes(384));  // needed by the open texts
  KeyValueCache none(model_, 0);
  Text& text = none.open(ids(40));
  step(none, {&text});
  none.close(text);
  EXPECT_EQ(none.known(ids(40)), 0u);
}

TEST_F(CachedTexts, CallGetsTheCacheWithTheLongestPrefixes) {
  CachePool caches(model_, bytes(256));
  const auto read = [&](KeyValueCache& cache, const Ids& ids) {
    Text& text = cache.open(ids);
    step(cache, {&text});
    cache.close(text);
  };
  auto a = caches.take({ids(9)}), b = caches.take({ids(9)});
  EXPECT_NE(a, b);
  read(*a, ids(9, 1));
  read(*b, ids(9, 2));
  const KeyValueCache *first = a.get(), *second = b.get();
  caches.give_back(std::move(b));
  caches.give_back(std::move(a));
  auto again = caches.take({ids(20, 2)});
  EXPECT_EQ(again.get(), second);
  caches.give_back(std::move(again));
  again = caches.take({ids(20, 1)});
  EXPECT_EQ(again.get(), first);
  const auto other = caches.take({ids(20, 1)});
  EXPECT_EQ(other.get(), second);
  for (uint64_t seed = 1; seed < 9; seed++) again->open(ids(40, seed));
  EXPECT_GT(again->bytes(), bytes(256));
  caches.give_back(std::move(again));  // too large to be kept
  EXPECT_EQ(caches.take({ids(9)})->known(ids(9)), 0u);
}

}  // namespace
}  // namespace qkv
