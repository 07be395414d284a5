#include "decode/search/required_terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "decode/search/sentence_decoder.h"
#include "tests/decode/searcher.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::config_of;
using testing::error_of;
using testing::Ids;
using testing::kEnd;
using testing::Searcher;

using Terms = std::vector<TermSpellings>;

RequiredTerms::Progress progress_of(const RequiredTerms& terms, const Ids& tokens) {
  RequiredTerms::Progress progress;
  for (const int32_t token : tokens) progress = terms.after(progress, token);
  return progress;
}

Ids next_tokens(const RequiredTerms& terms, const Ids& tokens) {
  Ids next;
  terms.visit_next(progress_of(terms, tokens), [&](int32_t token) { next.push_back(token); });
  std::ranges::sort(next);
  return next;
}

Ids missing(const RequiredTerms& terms, const Ids& tokens) { return terms.missing(progress_of(terms, tokens)); }

TEST(RequiredTerms, AnySpellingOfATermIsSufficient) {
  const RequiredTerms terms(Terms{{{5, 6}, {7}}, {{8}}});
  EXPECT_EQ(missing(terms, {5, 6, 8}), Ids());
  EXPECT_EQ(missing(terms, {3, 7}), Ids{1});
  EXPECT_EQ(missing(terms, {8, 5}), Ids{0});
  EXPECT_EQ(missing(terms, {5, 5, 6}), Ids{1});
  EXPECT_TRUE(terms.has_all(progress_of(terms, {8, 3, 7, 9})));
}

TEST(RequiredTerms, AnOccurrenceCountsOnce) {
  const RequiredTerms twice({{{5}}, {{5}}}), nested({{{5, 6}}, {{6}}});
  EXPECT_EQ(missing(twice, {5}), Ids{1});
  EXPECT_EQ(missing(twice, {5, 5}), Ids());
  EXPECT_EQ(missing(nested, {5, 6}), Ids{1});
  EXPECT_EQ(missing(nested, {6, 5, 6}), Ids());
}

TEST(RequiredTerms, ATermIsFoundBehindItsOwnBeginning) {
  const RequiredTerms terms(Terms{{{5, 5, 6}}});
  EXPECT_EQ(missing(terms, {5, 5, 5, 6}), Ids());
  EXPECT_EQ(missing(terms, {5, 6, 5, 6}), Ids{0});
  const RequiredTerms inside({{{1, 2, 3, 4}}, {{2, 3, 5}}});
  EXPECT_EQ(missing(inside, {1, 2, 3, 5}), Ids{0});
}

TEST(RequiredTerms, TheNextTokensBeginOrContinueATerm) {
  const RequiredTerms terms(Terms{{{5, 6}, {5, 7}}, {{8}}});
  EXPECT_EQ(next_tokens(terms, {}), (Ids{5, 8}));
  EXPECT_EQ(next_tokens(terms, {5}), (Ids{6, 7}));
  EXPECT_EQ(next_tokens(terms, {5, 3}), (Ids{5, 8}));
  EXPECT_EQ(next_tokens(terms, {5, 6}), Ids{8});
  EXPECT_EQ(next_tokens(terms, {5, 6, 8}), Ids());
}

TEST(RequiredTerms, AWordThatOnlyBeginsWithATermIsNot) {
  const RequiredTerms terms({{{5, 6}}}, [](int32_t token) { return token == 9; });
  EXPECT_EQ(missing(terms, {5, 6}), Ids());
  EXPECT_EQ(missing(terms, {5, 6, 9}), Ids{0});
  EXPECT_EQ(missing(terms, {5, 6, 4, 9}), Ids());
  EXPECT_EQ(next_tokens(terms, {5, 6, 9}), Ids{5});
}

TEST(RequiredTerms, ALongerSpellingOfATermIsFound) {
  const RequiredTerms terms(Terms{{{5}, {5, 9}, {5, 9, 9}}}, [](int32_t token) { return token == 9 || token == 8; });
  EXPECT_EQ(missing(terms, {5, 9}), Ids());
  EXPECT_EQ(missing(terms, {5, 9, 9, 3}), Ids());
  EXPECT_EQ(missing(terms, {5, 9, 8}), Ids{0});
  EXPECT_EQ(missing(terms, {5, 3, 9}), Ids());
  EXPECT_EQ(next_tokens(terms, {5, 9}), Ids());
}

TEST(RequiredTerms, GroupsCountTermsAndBeginnings) {
  const RequiredTerms terms(Terms{{{5, 6, 7, 4}}, {{8}}});
  const auto group = [&](const Ids& tokens) { return terms.group(progress_of(terms, tokens)); };
  EXPECT_EQ(group({}), 0u);
  EXPECT_EQ(group({5}), 1u);
  EXPECT_EQ(group({5, 3}), 0u);
  EXPECT_EQ(group({8}), 4u);
  EXPECT_EQ(group({8, 5}), 5u);
  EXPECT_EQ(group({8, 5, 6}), 6u);
  EXPECT_EQ(group({8, 5, 6, 7}), 7u);
  EXPECT_EQ(group({8, 5, 6, 7, 4}), 8u);
}

TEST(RequiredTerms, WhatCannotBeRequiredIsRefused) {
  EXPECT_EQ(error_of([] { RequiredTerms(Terms{{}}); }), "required term 1 has no spelling");
  EXPECT_EQ(error_of([] { RequiredTerms(Terms{{{1}}, {{2}, {}}}); }), "required term 2 has an empty spelling");
  EXPECT_EQ(error_of([] { RequiredTerms(Terms(33, {{1}})); }),
            "a sentence must have at most 32 required terms (has 33)");
}

TEST(ShareAmongGroups, EachGroupHasItsShareAndTheBestFillTheRest) {
  using Places = std::vector<size_t>;
  const auto share = [](const Places& groups, size_t width) { return share_among_groups(groups, width); };
  EXPECT_EQ(share({0, 0, 0, 1, 2}, 3), (Places{0, 3, 4}));
  EXPECT_EQ(share({0, 0, 0, 2, 2, 2}, 5), (Places{0, 1, 3, 4, 5}));
  EXPECT_EQ(share({0, 0, 0, 2}, 3), (Places{0, 1, 3}));
  EXPECT_EQ(share({0, 0, 0}, 2), (Places{0, 1}));
  EXPECT_EQ(share({0, 1, 2}, 2), (Places{1, 2}));
  EXPECT_EQ(share({2}, 5), Places{0});
  EXPECT_EQ(share({}, 5), Places());
}

// ---- The search

bool contains(const Ids& tokens, const Ids& term) { return !std::ranges::search(tokens, term).empty(); }

// Adds all sequences with both terms that end, or have `longest` tokens.
void enumerate(Searcher& s, const Ids& source, const std::vector<Ids>& terms, Ids& ids, int64_t longest,
               std::vector<Decoded>& all) {
  const bool is_longest = std::ssize(ids) == longest;
  if (std::ranges::all_of(terms, [&](const Ids& term) { return contains(ids, term); })) {
    Ids ended = ids;
    if (!is_longest) ended.push_back(kEnd);
    const double sum = s.forced_sum(source, ended);
    all.push_back({.ids = ids, .log_probability = sum, .score = sum});
  }
  if (is_longest) return;
  for (int32_t token = 0; token < 5; token++) {
    if (token == kEnd) continue;
    ids.push_back(token);
    enumerate(s, source, terms, ids, longest, all);
    ids.pop_back();
  }
}

TEST(SearchWithTerms, AWideBeamFindsTheBestSequenceThatHasThem) {
  for (const uint64_t seed : {1, 2, 3}) {
    Searcher s(config_of(5, 6), seed);
    const Ids source = {3, 1, kEnd};
    const std::vector<Ids> spellings = {{4, 3}, {1}};
    std::vector<Decoded> all;
    Ids prefix;
    enumerate(s, source, spellings, prefix, 6, all);
    std::ranges::sort(all, std::greater<>(), &Decoded::score);
    const RequiredTerms terms({{spellings[0]}, {spellings[1]}});
    SearchOptions options;
    options.beam = 1000;
    options.n_best = 8;
    options.length_penalty = 0;
    const auto found = n_best(s.model, {SearchInput{.source = source, .terms = &terms}}, options, s.arena).front();
    ASSERT_EQ(found.size(), 8u);
    for (size_t i = 0; i < found.size(); i++) {
      EXPECT_EQ(found[i].ids, all[i].ids) << "seed " << seed << ", " << i;
      EXPECT_NEAR(found[i].score, all[i].score, 1e-4);
      EXPECT_TRUE(found[i].missing_terms.empty());
    }
  }
}

TEST(SearchWithTerms, EveryBeamFindsAllTermsIfThereIsRoom) {
  Searcher s(config_of(30, 40), 7);
  const Ids source = {3, 11, 17, 8, kEnd};
  const RequiredTerms terms(Terms{{{20, 21, 22}}, {{9}, {10, 9}}, {{25, 26}}});
  for (const int64_t beam : {1, 2, 4, 8})
    for (const double alpha : {0.0, 1.0}) {
      SearchOptions options;
      options.beam = beam;
      options.length_penalty = alpha;
      const auto found = n_best(s.model, {SearchInput{.source = source, .terms = &terms}}, options, s.arena).front();
      ASSERT_EQ(found.size(), 1u);
      EXPECT_TRUE(found[0].missing_terms.empty()) << "beam " << beam;
      EXPECT_TRUE(contains(found[0].ids, {20, 21, 22}) && contains(found[0].ids, {9}) &&
                  contains(found[0].ids, {25, 26}));
      Ids ended = found[0].ids;
      if (found[0].ended) ended.push_back(kEnd);
      EXPECT_NEAR(found[0].log_probability, s.forced_sum(source, ended), 1e-3);
    }
}

TEST(SearchWithTerms, TermsWithoutRoomAreMissing) {
  Searcher s(config_of(30, 40), 7);
  const Ids source = {3, 11, kEnd};
  const RequiredTerms terms(Terms{{{20, 21, 22, 23, 24}}, {{9}}});
  SearchOptions options;
  options.beam = 4;
  options.max_length = 4;
  const auto found = n_best(s.model, {SearchInput{.source = source, .terms = &terms}}, options, s.arena).front();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].missing_terms, Ids{0});
  EXPECT_TRUE(contains(found[0].ids, {9}));
}

TEST(SearchWithTerms, TermsThatAreExcludedAreMissing) {
  Searcher s(config_of(30, 40), 7);
  const Ids source = {3, 11, kEnd};
  const RequiredTerms terms(Terms{{{20}}});
  SearchOptions options;
  options.beam = 4;
  options.never = {20};
  const auto found = n_best(s.model, {SearchInput{.source = source, .terms = &terms}}, options, s.arena).front();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].missing_terms, Ids{0});
}

TEST(SearchWithTerms, OtherSentencesOfTheBatchStayAsTheyAre) {
  Searcher s(config_of(30, 40), 7);
  const std::vector<Ids> sources = {{3, 11, kEnd}, {4, 12, 9, kEnd}, {5, kEnd}};
  const RequiredTerms terms(Terms{{{20, 21}}});
  SearchOptions options;
  options.beam = 4;
  std::vector<SearchInput> with;
  for (const Ids& source : sources) with.push_back({.source = source});
  const auto without = n_best(s.model, with, options, s.arena);
  with[1].terms = &terms;
  const auto found = n_best(s.model, with, options, s.arena);
  const auto alone = n_best(s.model, {with[1]}, options, s.arena);
  for (const size_t i : {0, 2}) {
    EXPECT_EQ(found[i].front().ids, without[i].front().ids);
    EXPECT_EQ(found[i].front().score, without[i].front().score);
  }
  EXPECT_EQ(found[1].front().ids, alone[0].front().ids);
  EXPECT_EQ(found[1].front().score, alone[0].front().score);
}

TEST(SearchWithTerms, SamplingIsRefused) {
  Searcher s(config_of(30, 40), 7);
  const Ids source = {3, kEnd};
  const RequiredTerms terms(Terms{{{20}}});
  SearchOptions options;
  options.beam = 1;
  options.sampling = true;
  EXPECT_EQ(error_of([&] { n_best(s.model, {SearchInput{.source = source, .terms = &terms}}, options, s.arena); }),
            "required terms need beam search or greedy search, not sampling");
}

}  // namespace
}  // namespace qkv
