// Characters that stand for protected parts, in models that were trained with them.
#include "decode/terms/stand_ins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "tests/decode/random_run.h"
#include "tests/support/errors.h"
#include "text/stand_in_characters.h"

namespace qkv {
namespace {

using testing::error_if_any;
using testing::expect_contains;
using testing::kText;

const std::string kFirst{kStandIns[0]}, kSecond{kStandIns[1]}, kThird{kStandIns[2]};
const std::vector<StandIn> kThree = {{kFirst, 10, 20}, {kSecond, 11, 21}, {kThird, 12, 22}};

// Replaces each of these parts of a sentence, which occur once, by a stand-in.
ReducedText stood_in(std::string_view sentence, const std::vector<std::string>& parts, bool in_lower_case = false) {
  std::vector<ProtectedPart> places;
  for (const std::string& part : parts) places.push_back({sentence.find(part), sentence.find(part) + part.size()});
  return stand_in(sentence, places, kThree, in_lower_case);
}

Hypothesis hypothesis_of(std::string text, std::vector<std::string> tokens, std::vector<Alignment> alignment) {
  Hypothesis h;
  h.text = std::move(text);
  h.tokens = std::move(tokens);
  h.alignment = std::move(alignment);
  h.token_scores.assign(h.tokens.size(), -1);
  return h;
}

size_t times(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) found++;
  return found;
}

TEST(StandInsTest, ReplaceThePartsOfASource) {
  const ReducedText found = stood_in("Go to (X.org), not {Y}.", {"X.org", "{Y}"}, true);
  EXPECT_EQ(found.text, "go to (" + kFirst + "), not " + kSecond + ".");
  ASSERT_EQ(found.kept.size(), 2u);
  EXPECT_EQ(found.kept[0].text, "X.org");
  EXPECT_EQ(found.kept[0].at, 7u);
  EXPECT_EQ(found.kept[1].text, "{Y}");
  EXPECT_EQ(found.kept[1].stand_in, kSecond);
}

TEST(StandInsTest, PartsMayChangeTheirOrder) {
  const ReducedText source = stood_in("On {day} I go to {city}.", {"{day}", "{city}"});
  const std::vector<std::string> tokens = {"▁On", "▁", kFirst, "▁I", "▁go", "▁to", "▁", kSecond, ".", "</s>"};
  Hypothesis h = hypothesis_of("Nach " + kSecond + " gehe ich " + kFirst + ".",
                               {"▁Nach", "▁", kSecond, "▁gehe", "▁ich", "▁", kFirst, "."},
                               {{5, 0}, {5, 1}, {4, 2}, {4, 3}, {3, 4}, {1, 5}, {3, 6}, {8, 7}});
  h.words = {{"Nach", -1}, {kSecond, -2}, {"gehe", -1}, {"ich", -1}, {kFirst + ".", -3}};
  replace_stand_ins(source.kept, source.text, tokens, false, h);
  EXPECT_EQ(h.text, "Nach {city} gehe ich {day}.");
  EXPECT_EQ(h.tokens, (std::vector<std::string>{"▁Nach", "▁", "{city}", "▁gehe", "▁ich", "▁", "{day}", "."}));
  EXPECT_EQ(h.words[1].word, "{city}");
  EXPECT_EQ(h.words[4].word, "{day}.");
  EXPECT_EQ(h.alignment[2], (Alignment{7, 2}));
  EXPECT_EQ(h.alignment[6], (Alignment{2, 6}));
  EXPECT_EQ(tokens_with(source.kept, source.text, tokens)[2], "{day}");
}

TEST(StandInsTest, APartThatTheTranslationLacksStandsWhereTheAlignmentSays) {
  const ReducedText source = stood_in("Please {a} visit {b} today.", {"{a}", "{b}"});
  const std::vector<std::string> tokens = {"▁Please", "▁", kFirst, "▁visit", "▁", kSecond, "▁today", "."};
  Hypothesis h =
      hypothesis_of("Heute " + kSecond + " bitte besuchen.", {"▁Heute", "▁", kSecond, "▁bitte", "▁besuchen", "."},
                    {{6, 0}, {4, 1}, {5, 2}, {0, 3}, {3, 4}, {7, 5}});
  h.attention.assign(6, std::vector<float>(8, 0.125F));
  replace_stand_ins(source.kept, source.text, tokens, true, h);
  EXPECT_EQ(h.text, "Heute {b} bitte {a} besuchen.");
  EXPECT_EQ(h.tokens, (std::vector<std::string>{"▁Heute", "▁", "{b}", "▁bitte", "{a}", "▁besuchen", "."}));
  EXPECT_EQ(h.token_scores.size(), 7u);
  EXPECT_EQ(h.alignment[4], (Alignment{2, 4}));
  ASSERT_EQ(h.attention.size(), 7u);
  for (const std::vector<float>& row : h.attention) EXPECT_EQ(row.size(), 8u);
  EXPECT_EQ(h.attention[4][2], 1);
}

TEST(StandInsTest, WordsAndPartsStayApart) {
  const auto text = [](const std::string& translation) {
    const ReducedText source = stood_in("a x.org {b}c d", {"x.org", "{b}"});
    Hypothesis h = hypothesis_of(translation, {}, {});
    replace_stand_ins(source.kept, source.text, {}, false, h);
    return h.text;
  };
  EXPECT_EQ(text("A" + kFirst + "B " + kSecond + "C"), "A x.org B {b}C");
  EXPECT_EQ(text("(" + kFirst + ")" + kSecond), "(x.org){b}");
  EXPECT_EQ(text(kFirst + kSecond), "x.org {b}");
  EXPECT_EQ(text("犬" + kFirst + "犬" + kSecond), "犬x.org犬{b}");
}

TEST(StandInsTest, APartMayBeAStandIn) {
  const ReducedText source = stood_in(kSecond + " and {b}", {kSecond, "{b}"});
  EXPECT_EQ(source.text, kFirst + " and " + kSecond);
  Hypothesis h = hypothesis_of(kSecond + " und " + kFirst, {"▁", kSecond, "▁und", "▁", kFirst}, {});
  replace_stand_ins(source.kept, source.text, {"▁", kFirst, "▁and", "▁", kSecond}, false, h);
  EXPECT_EQ(h.text, "{b} und " + kSecond);
  EXPECT_EQ(h.tokens, (std::vector<std::string>{"▁", "{b}", "▁und", "▁", kSecond}));
}

TEST(StandInsTest, ReservedCharactersOfATextAreProtected) {
  std::vector<ProtectedPart> parts = {{2, 2 + 2 * kFirst.size()}};
  const std::string text = "a " + kSecond + kFirst + " b" + kFirst + kSecond;
  protect_reserved(text, std::vector<std::string>{kFirst, kSecond}, parts);
  EXPECT_EQ(parts, (std::vector<ProtectedPart>{{2, 10}, {12, 16}, {16, 20}}));
  parts = {{0, 1}, {5, 7}, {9, 13}};  // touch, touch, and reach across
  protect_reserved("x" + kFirst + "yy" + kFirst + kSecond, std::vector<std::string>{kFirst, kSecond}, parts);
  EXPECT_EQ(parts, (std::vector<ProtectedPart>{{0, 1}, {1, 5}, {5, 7}, {9, 13}}));
}

TEST(StandInsTest, OnesThatTheSourceLacksAreRemovedWithTheirSpace) {
  const Tokenizer list =
      Tokenizer::with_pieces({}, {"<s>", "</s>", "<unk>", "▁", "a", kFirst, kSecond}, "<unk>", "list");
  TranslationTokens tokens;
  tokens.stand_ins = {{kFirst, 5, 5}, {kSecond, 6, 6}};
  const std::vector<int32_t> source = {4, 3, 5, 1}, translation = {3, 6, 4, 5, 3, 5, 6, 4};
  const std::vector<size_t> surplus = surplus_stand_ins(source, translation, tokens, list);
  EXPECT_EQ(surplus, (std::vector<size_t>{0, 1, 4, 5, 6}));
  const Decoded found{translation, {-1, -2, -3, -4, -5, -6, -7, -8, -9}, -45};
  const Decoded rest = without_tokens(found, surplus);
  EXPECT_EQ(rest.ids, (std::vector<int32_t>{4, 5, 4}));
  EXPECT_EQ(rest.token_log_probabilities, (std::vector<float>{-3, -4, -8, -9}));
  EXPECT_EQ(rest.log_probability, -24);
  Forced forced;
  for (int i = 0; i < 16; i++) forced.attention.push_back(static_cast<float>(i));
  EXPECT_EQ(without_tokens(forced, surplus, 2).attention, (std::vector<float>{4, 5, 6, 7, 14, 15}));
}

// ---- Of a translator

class StandInRunTest : public ::testing::Test {
 protected:
  StandInRunTest() { options.beam = 3; }

  Translator translator(uint64_t seed) const {
    return Translator(testing::make_stand_in_run(directory / ("run" + std::to_string(seed)), seed));
  }

  testing::TempDir directory;
  TranslateOptions options;
};

TEST_F(StandInRunTest, EveryPartIsInEveryHypothesisOnce) {
  const std::vector<std::string> parts = {"https://example.org/a?b=1", "{name}", "12.5 km", kSecond};
  const std::string line =
      "the " + parts[0] + " dog (" + parts[1] + ") sees " + parts[2] + " the cat " + parts[3] + " .";
  for (uint64_t seed = 1; seed <= 8; seed++) {
    const Translator model = translator(seed);
    for (const bool samples : {false, true}) {
      options.sampling = samples;
      options.n_best = 3;
      options.alignment = options.attention = seed % 2 == 0;
      const Translation found = model.translate({line}, options).front();
      for (const std::string& part : parts) EXPECT_EQ(std::ranges::count(found.source_tokens, part), 1) << part;
      for (const Hypothesis& h : found.hypotheses) {
        for (const std::string& part : parts) {
          EXPECT_EQ(times(h.text, part), 1u) << part << " in " << h.text;
          EXPECT_EQ(std::ranges::count(h.tokens, part), 1) << part;
        }
        for (const std::string_view stand_in : kStandIns)
          EXPECT_EQ(times(h.text, std::string(stand_in)), stand_in == kSecond ? 1u : 0u) << h.text;
        EXPECT_EQ(h.alignment.size(), options.alignment ? h.tokens.size() : 0);
        EXPECT_EQ(h.attention.size(), options.attention ? h.tokens.size() : 0);
        for (const std::vector<float>& row : h.attention) EXPECT_EQ(row.size(), found.source_tokens.size());
      }
    }
  }
}

TEST_F(StandInRunTest, MorePartsThanStandInsAreTakenOut) {
  std::string line = "the dog";
  for (int i = 0; i < 9; i++) line += " sees {x" + std::to_string(i) + "} the cat";
  const std::string text = translator(1).translate({line}, options).front().text();
  for (int i = 0; i < 9; i++) EXPECT_EQ(times(text, "{x" + std::to_string(i) + "}"), 1u) << text;
}

TEST_F(StandInRunTest, TextWithoutWordsStaysAsItIs) {
  const Translator model = translator(1);
  for (const std::string line : {"https://example.org/a", " {a}, {b}! "})
    EXPECT_EQ(model.translate({line}, options).front().text(), line);
}

TEST_F(StandInRunTest, ASentenceWithoutPartsHasNoStandIn) {
  for (uint64_t seed = 1; seed <= 4; seed++)
    for (const Translation& t : translator(seed).translate(kText, options))
      for (const std::string_view stand_in : kStandIns) EXPECT_EQ(times(t.text(), std::string(stand_in)), 0u);
}

TEST_F(StandInRunTest, TokensOfAStreamAreThoseOfItsTranslation) {
  options.beam = 1;
  options.sampling = true;
  options.n_best = 4;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    std::vector<std::vector<std::string>> tokens(4);
    options.on_token = [&](const TokenReport& report) {
      tokens[static_cast<size_t>(report.hypothesis)].push_back(report.token);
      return false;
    };
    translator(seed).translate({kText[0] + " {a} " + kFirst}, options);
    for (const std::vector<std::string>& all : tokens) {
      EXPECT_FALSE(all.empty());
      for (const std::string_view stand_in : kStandIns) EXPECT_EQ(std::ranges::count(all, std::string(stand_in)), 0);
    }
  }
}

TEST_F(StandInRunTest, ReservedCharactersInPrefixesAreRefused) {
  const Translator model = translator(1);
  const auto error = [&](const std::string& prefix) {
    return error_if_any([&] { model.translate({"the dog"}, options, {prefix}); });
  };
  EXPECT_EQ(error("a"), "");
  expect_contains(error("a " + kSecond), "prefix must not have the character U+10FF02, which the model reserves");
  options.source_prefix = "the " + std::string(kTermMarks[0]);
  expect_contains(error(""), "source_prefix must not have the character U+10FF11");
}

TEST_F(StandInRunTest, TheScoreIsOfTheTokensThatStay) {
  options.sampling = true;
  options.n_best = 8;
  bool has_penalty = false;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    const std::vector<Translation> found = translator(seed).translate({kText[0]}, options);
    for (const Hypothesis& h : found.front().hypotheses) {
      const double length = static_cast<double>(std::max<size_t>(1, h.token_scores.size()));
      EXPECT_NEAR(h.score, h.log_probability / std::pow(length, options.length_penalty), 1e-4);
      has_penalty |= length > 1;
    }
  }
  EXPECT_TRUE(has_penalty);
}

TEST_F(StandInRunTest, RunsOfAnEnsembleHaveTheSameCharacters) {
  const std::string first = testing::make_stand_in_run(directory / "first"),
                    second = testing::make_stand_in_run(directory / "second", 2);
  EXPECT_EQ(error_if_any([&] { Translator(first, {second}); }), "");
  const std::string file = second + "/translation.json", text = testing::slurp(file);
  for (const std::string field : {"stand_ins", "term_marks"}) {
    nlohmann::json changed = nlohmann::json::parse(text);
    changed[field] = nlohmann::json::array();
    testing::spill(file, changed.dump());
    expect_contains(error_if_any([&] { Translator(first, {second}); }), field + " of translation.json differ from");
  }
}

TEST(StandInConfigTest, Errors) {
  const Tokenizer list = Tokenizer::with_pieces({}, {"<s>", "</s>", "<unk>", "a", kFirst}, "<unk>", "list");
  const auto error = [&](std::vector<std::string> stand_ins, std::vector<std::string> marks = {}) {
    TranslationConfig config;
    config.stand_ins = std::move(stand_ins), config.term_marks = std::move(marks);
    return error_if_any([&] { tokens_of(config, {list, list}, "run"); });
  };
  EXPECT_EQ(error({kFirst}), "");
  EXPECT_EQ(error({"a"}), "run: stand_ins must have single characters of a private use area (holds \"a\")");
  expect_contains(error({""}), "single characters");
  expect_contains(error({kFirst + kSecond}), "single characters");
  expect_contains(error({kFirst, kFirst}), "twice");
  expect_contains(error({kSecond}), "not in the vocabulary");
  expect_contains(error({}, {kFirst}), "term_marks must have two characters or none (has 1)");
  expect_contains(error({kFirst}, {kFirst, kSecond}), "twice");
  expect_contains(error(std::vector<std::string>(65, kFirst)), "at most 64");
}

}  // namespace
}  // namespace qkv
