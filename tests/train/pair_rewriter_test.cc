// Pairs of a training text with stand-ins and with translations of terms.
#include "train/pair_rewriter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "qkv/system.h"
#include "text/stand_in_characters.h"

namespace qkv::testing {
namespace {

const std::string kBefore{kTermMarks[0]}, kAfter{kTermMarks[1]};

TranslationTokens tokens_with(bool stand_ins, bool term_marks) {
  TranslationTokens tokens;
  for (const std::string_view text : kStandIns)
    if (stand_ins) tokens.stand_ins.push_back({std::string(text)}), tokens.reserved.emplace_back(text);
  if (term_marks)
    tokens.term_marks = TermMarks{kBefore, kAfter}, tokens.reserved.insert(tokens.reserved.end(), {kBefore, kAfter});
  return tokens;
}

size_t occurrences(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) found++;
  return found;
}

size_t stand_ins_in(const std::string& text) {
  size_t found = 0;
  for (const std::string_view stand_in : kStandIns) found += occurrences(text, stand_in);
  return found;
}

// Rewrites a pair many times, with other numbers, and calls check(source, target) for each.
template <class Check>
void rewrite_often(const PairRewriter& rewriter, const std::string& source, const std::string& target, Check&& check) {
  for (int64_t number = 0; number < 200; number++) {
    std::string a = source, b = target;
    rewriter.rewrite(a, b, number);
    check(a, b);
  }
}

TEST(PairRewriterTest, PartsOfBothSidesBecomeStandIns) {
  const PairRewriter rewriter(tokens_with(true, false), {}, 1);
  int replaced = 0, kept = 0;
  rewrite_often(rewriter, "see https://a.org/x and %s", "%s und https://a.org/x", [&](const auto& a, const auto& b) {
    EXPECT_EQ(a.find("https") == a.npos, b.find("https") == b.npos);
    (a.find("https") == a.npos ? replaced : kept)++;
  });
  EXPECT_GT(replaced, 120);
  EXPECT_GT(kept, 20);
}

TEST(PairRewriterTest, BothSidesHaveTheSameStandInsOnceEach) {
  const PairRewriter rewriter(tokens_with(true, false), {}, 1);
  size_t most = 0;
  std::vector<bool> seen(kStandIns.size());
  rewrite_often(rewriter, "Tom gave {a} and {b} and {b} to Mary in 1984.", "Tom gab Mary {b} und {a} und {b} in 1984.",
                [&](const auto& a, const auto& b) {
                  most = std::max(most, stand_ins_in(a));
                  for (size_t k = 0; k < kStandIns.size(); k++) {
                    EXPECT_EQ(occurrences(a, kStandIns[k]), occurrences(b, kStandIns[k])) << a << " | " << b;
                    EXPECT_LE(occurrences(a, kStandIns[k]), 1u);
                    if (a.find(kStandIns[k]) != a.npos) seen[k] = true;
                  }
                });
  EXPECT_GT(most, 3u);
  EXPECT_EQ(std::ranges::count(seen, true), std::ssize(kStandIns));
}

TEST(PairRewriterTest, PartsThatOneSideLacksStay) {
  const PairRewriter rewriter(tokens_with(true, false), {}, 1);
  rewrite_often(rewriter, "{a} {b} {b}", "{b} {c}", [&](const auto& a, const auto& b) {
    EXPECT_EQ(occurrences(a, "{a}") + occurrences(a, "{b}"), 3u) << a;
    EXPECT_EQ(occurrences(b, "{c}") + occurrences(b, "{b}"), 2u) << b;
  });
}

TEST(PairRewriterTest, WithoutPartsAndWordsStandInsAreAtTheEnds) {
  const PairRewriter rewriter(tokens_with(true, false), {}, 1);
  int changed = 0;
  rewrite_often(rewriter, "she sleeps.", "sie schläft!", [&](std::string a, std::string b) {
    EXPECT_EQ(stand_ins_in(a), stand_ins_in(b));
    changed += stand_ins_in(a) > 0;
    if (stand_ins_in(a) == 0) return;
    const bool first = a.ends_with(" she sleeps.");
    EXPECT_EQ(first, b.ends_with(" sie schläft!"));
    EXPECT_TRUE(first || (a.starts_with("she sleeps ") && a.ends_with(".") && b.ends_with("!"))) << a << " | " << b;
  });
  EXPECT_GT(changed, 40);
  EXPECT_LT(changed, 120);
}

TEST(PairRewriterTest, PartsAtTheEndStayWhole) {
  const PairRewriter rewriter(tokens_with(true, false), {}, 1);
  for (const std::string part : {"{name}", "${x}", "{{n}}", "items[0]", "%(n)s", "<b>"}) {
    int changed = 0;
    rewrite_often(rewriter, "hello " + part, "hallo " + part + "!", [&](const auto& a, const auto& b) {
      EXPECT_EQ(occurrences(a, part), occurrences(b, part)) << a << " | " << b;
      const bool is_replaced = occurrences(a, part) == 0;
      for (const char bracket : {'{', '}', '[', ']', '(', ')', '<', '>'})
        EXPECT_EQ(std::ranges::count(a, bracket), is_replaced ? 0 : std::ranges::count(part, bracket)) << a;
      EXPECT_EQ(b.find("name") == b.npos, a.find("name") == a.npos) << a << " | " << b;
      EXPECT_EQ(stand_ins_in(a), stand_ins_in(b));
      changed += stand_ins_in(a) > (is_replaced ? 1 : 0);
    });
    EXPECT_GT(changed, 20) << part;
  }
}

TEST(PairRewriterTest, TranslationsFollowTheirWords) {
  const PairRewriter rewriter(tokens_with(false, true), {}, 1);
  bool has_two = false;
  rewrite_often(rewriter, "Anna Berg sleeps", "Anna Berg schläft", [&](const auto& a, const auto& b) {
    EXPECT_EQ(b, "Anna Berg schläft");
    EXPECT_EQ(occurrences(a, kBefore), occurrences(a, kAfter));
    has_two |= a == "Anna Berg" + kBefore + " Anna Berg" + kAfter + " sleeps";
    EXPECT_EQ(a == "Anna Berg sleeps", a.find(kAfter) == a.npos);
  });
  EXPECT_TRUE(has_two);
}

TEST(PairRewriterTest, WithBothAWordHasOneOfThem) {
  const PairRewriter rewriter(tokens_with(true, true), {}, 1);
  bool stood_in = false, has_term = false;
  rewrite_often(rewriter, "Anna sees Boris", "Anna sieht Boris", [&](const auto& a, const auto& b) {
    EXPECT_EQ(stand_ins_in(a), stand_ins_in(b));
    EXPECT_EQ(occurrences(b, kBefore), 0u);
    stood_in |= stand_ins_in(a) > 0;
    has_term |= occurrences(a, kBefore) > 0;
  });
  EXPECT_TRUE(stood_in && has_term);
}

TEST(PairRewriterTest, ReservedCharactersOfTheTextAreRemoved) {
  const PairRewriter rewriter(tokens_with(true, true), {}, 1);
  const std::string first(kStandIns[0]);
  rewrite_often(rewriter, "a" + first + "b" + kBefore, first, [&](const auto& a, const auto& b) {
    EXPECT_EQ(stand_ins_in(a), 0u);
    EXPECT_EQ(a, "ab");
    EXPECT_EQ(b, "");
  });
}

TEST(PairRewriterTest, DependsOnSeedAndNumberOnly) {
  ParallelText text;
  for (int i = 0; i < 300; i++)
    text.source.push_back("Tom sees {x} and Mary"), text.target.push_back("Tom sieht {x} und Mary");
  const auto rewritten = [&](uint64_t seed, int threads) {
    set_threads(threads);
    ParallelText copy = text;
    PairRewriter(tokens_with(true, true), {}, seed).rewrite(copy, 5);
    return copy;
  };
  const int before = threads();
  const ParallelText one = rewritten(1, 1);
  EXPECT_EQ(rewritten(1, 3).source, one.source);
  EXPECT_EQ(rewritten(1, 3).target, one.target);
  EXPECT_NE(rewritten(2, 1).source, one.source);
  set_threads(before);
  std::string source = text.source[7], target = text.target[7];
  PairRewriter(tokens_with(true, true), {}, 1).rewrite(source, target, 12);
  EXPECT_EQ(source, one.source[7]);
  EXPECT_EQ(target, one.target[7]);
}

}  // namespace
}  // namespace qkv::testing
