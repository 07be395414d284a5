// A chain of translators: texts in between, scores, alignments, and what stays as it is.
#include "qkv/pivot.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/to_size.h"
#include "decode/pivot/pivot_steps.h"
#include "decode/terms/parts_to_keep.h"
#include "qkv/jobs.h"
#include "tests/decode/random_run.h"
#include "tests/documents/translations.h"
#include "tests/support/errors.h"
#include "tests/support/processor_time.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::kText;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) count++;
  return count;
}

class PivotTest : public ::testing::Test {
 protected:
  Translator make(uint64_t seed) {
    return Translator(testing::make_random_run(directory / std::to_string(seed), {}, seed));
  }
  PivotTranslator chain(std::vector<uint64_t> seeds = {1, 2}) {
    std::vector<Translator> translators;
    for (const uint64_t seed : seeds) translators.push_back(make(seed));
    return PivotTranslator(std::move(translators));
  }
  static std::vector<TranslateOptions> short_options(size_t count = 2) {
    TranslateOptions options;
    options.max_length = 8;
    options.alignment = true;
    return std::vector<TranslateOptions>(count, options);
  }

  testing::TempDir directory;
};

TEST_F(PivotTest, EachModelTranslatesWhatTheOneBeforeHasTranslated) {
  const PivotTranslator three = chain({1, 2, 3});
  const std::vector<TranslateOptions> options = short_options(3);
  const std::vector<Translation> found = three.translate(kText, options);
  ASSERT_EQ(found.size(), kText.size());
  for (size_t i = 0; i < kText.size(); i++) {
    const Translation first = three.translators()[0].translate({kText[i]}, options[0]).front(),
                      second = three.translators()[1].translate({first.text()}, options[1]).front(),
                      third = three.translators()[2].translate({second.text()}, options[2]).front();
    EXPECT_EQ(found[i].source, kText[i]);
    EXPECT_EQ(found[i].source_tokens, first.source_tokens);
    EXPECT_EQ(found[i].pivot, (std::vector<std::string>{first.text(), second.text()}));
    EXPECT_EQ(found[i].text(), third.text());
    const Hypothesis& h = found[i].hypotheses.front();
    EXPECT_EQ(h.tokens, third.hypotheses.front().tokens);
    EXPECT_EQ(h.token_scores, third.hypotheses.front().token_scores);
    EXPECT_DOUBLE_EQ(h.score,
                     first.hypotheses.front().score + second.hypotheses.front().score + third.hypotheses.front().score);
    for (const Alignment& pair : h.alignment) {
      EXPECT_LT(to_size(pair.source), found[i].source_tokens.size());
      EXPECT_LT(to_size(pair.target), h.tokens.size());
    }
  }
}

TEST_F(PivotTest, AChainOfOneIsThatTranslator) {
  const PivotTranslator one = chain({1});
  TranslateOptions options;
  options.attention = true;
  options.glossary = "dog\tHund\n";
  const std::vector<Translation> found = one.translate(kText, {options}),
                                 wanted = one.translators().front().translate(kText, options);
  for (size_t i = 0; i < kText.size(); i++) {
    EXPECT_EQ(found[i].text(), wanted[i].text());
    EXPECT_EQ(found[i].hypotheses.front().attention, wanted[i].hypotheses.front().attention);
    EXPECT_TRUE(found[i].pivot.empty());
  }
}

TEST_F(PivotTest, StreamsHaveTheResultsOfLinesInOrder) {
  const PivotTranslator two = chain();
  std::vector<std::string> lines;
  for (size_t i = 0; i < 300; i++)
    lines.push_back(i % 7 == 0 ? "" : i % 5 == 0 ? kText[i % 4] + ". " + kText[0] + ".\n" + kText[1] : kText[i % 5]);
  std::vector<TranslateOptions> options = short_options();
  const std::vector<Translation> wanted = two.translate(lines, options);
  for (const int64_t workers : {1, 3}) {
    for (const int64_t window : {1, 50, 1000}) {
      options.front().workers = workers, options.front().window = window;
      size_t next = 0, written = 0;
      int64_t reported = 0;
      options.front().on_progress = [&](int64_t count) { reported += count; };
      const auto read = [&](SourceLine& line, bool) {
        if (next == lines.size()) return Next::end;
        line.text = lines[next++];
        return Next::line;
      };
      const auto write = [&](Translation&& translation) {
        EXPECT_EQ(translation.source, lines[written]);
        EXPECT_EQ(translation.text(), wanted[written].text());
        EXPECT_LE(next - written, to_size(3 * window));
        written++;
      };
      two.translate(read, write, options);
      EXPECT_EQ(written, lines.size());
      EXPECT_EQ(reported, std::ssize(lines));
    }
  }
}

TEST_F(PivotTest, LinesThatAreThereAreWrittenBeforeItWaitsForOthers) {
  const PivotTranslator two = chain();
  size_t next = 0, written = 0;
  const auto read = [&](SourceLine& line, bool wait) {
    if (!wait) return Next::later;  // one line arrives at a time
    EXPECT_EQ(written, next);
    if (next == 4) return Next::end;
    line.text = kText[next++];
    return Next::line;
  };
  two.translate(
      read, [&](Translation&&) { written++; }, short_options());
  EXPECT_EQ(written, 4u);
}

TEST_F(PivotTest, ProtectedPartsAreInEveryTextOnce) {
  const PivotTranslator three = chain({4, 5, 6});
  const std::vector<std::string> parts = {"https://example.org/a?b=c", "{name}", "12.5 km", "`a b`", "%s", "ZX-1"};
  std::vector<TranslateOptions> options = short_options(3);
  for (TranslateOptions& one : options) one.protect = "ZX-1(?= )";  // a place that other words do not leave
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    lines.push_back("the dog " + part + " sees the cat");
    lines.push_back("a man reads. " + part + "\n  the old cat (" + part + ") sleeps in the " + parts.front() + " .");
  }
  const std::vector<Translation> found = three.translate(lines, options);
  for (size_t i = 0; i < lines.size(); i++)
    for (const std::string& part : parts) {
      if (part == "ZX-1" && lines[i].find("ZX-1 ") == std::string::npos) continue;
      for (const std::string& text : {found[i].pivot[0], found[i].pivot[1], found[i].text()})
        EXPECT_EQ(count_of(text, part), count_of(lines[i], part)) << text << " of " << lines[i];
    }
}

TEST_F(PivotTest, WhiteSpaceAndLinesStay) {
  const PivotTranslator two = chain();
  const std::string text = two.translate({"  the dog reads.\n\n\tthe cat sleeps. \n"}, short_options()).front().text();
  EXPECT_TRUE(text.starts_with("  ") && text.ends_with(" \n")) << text;
  EXPECT_NE(text.find("\n\n\t"), text.npos) << text;
  EXPECT_EQ(two.translate({" \t "}, short_options()).front().text(), " \t ");
}

TEST_F(PivotTest, PrefixesAndNBestAreThoseOfTheLastModel) {
  const PivotTranslator two = chain();
  std::vector<TranslateOptions> options = short_options();
  for (TranslateOptions& one : options) one.n_best = 3;
  const std::vector<Translation> found = two.translate({kText[0], kText[1]}, options, {"the cat", ""});
  ASSERT_EQ(found[0].hypotheses.size(), 3u);
  for (const Hypothesis& h : found[0].hypotheses) EXPECT_TRUE(h.text.starts_with("the cat")) << h.text;
  EXPECT_FALSE(found[0].pivot.front().starts_with("the cat"));
  for (size_t k = 1; k < 3; k++) EXPECT_GE(found[1].hypotheses[k - 1].score, found[1].hypotheses[k].score);
  EXPECT_EQ(error_of([&] {
              two.translate({"a"}, {}, {"a", "b"});
            }),
            "prefixes must be one for each of 1 lines (are 2)");
}

TEST_F(PivotTest, OptionsThatAChainCannotHaveAreRefused) {
  const PivotTranslator two = chain();
  const auto refused = [&](auto set) {
    std::vector<TranslateOptions> options(2);
    set(options);
    return error_of([&] { two.translate({"a"}, options); });
  };
  EXPECT_EQ(refused([](auto& o) { o[1].attention = true; }),
            "attention cannot be combined with several models in a chain");
  EXPECT_EQ(refused([](auto& o) { o[0].on_token = [](const TokenReport&) { return false; }; }),
            "on_token cannot be combined with several models in a chain");
  EXPECT_EQ(refused([](auto& o) { o.pop_back(); }), "options must be one for each of 2 models in a chain (are 1)");
  EXPECT_EQ(refused([](auto& o) { o[1].beam = 0; }), "model 2 of the chain: beam must be between 1 and 1024 (is 0)");
  EXPECT_EQ(error_of([] { PivotTranslator({}); }), "a chain must have at least one translator");
  std::vector<TranslateOptions> options(2);
  EXPECT_EQ(error_of([&] {
              two.set_languages(options, {"en", "fr"});
            }),
            "pivot languages must be 1, one for each text in between (are 2)");
  for (const size_t count : {0, 1, 3}) {
    options.resize(count);
    const std::string wanted = fmt::format("options must be one for each of 2 models in a chain (are {})", count);
    EXPECT_EQ(error_of([&] { two.set_languages(options, {"en"}); }), wanted);
  }
  EXPECT_EQ(error_of([&] {
              translate_lines(two, [](SourceLine&, bool) { return Next::end; }, std::vector<TranslateOptions>(3), {},
                              {});
            }),
            "options must be one for each of 2 models in a chain (are 3)");
}

TEST_F(PivotTest, ErrorsAndNotesOfLaterModelsHaveTheirNumber) {
  const PivotTranslator two = chain();
  const PivotSteps steps({&two.translators()[0], &two.translators()[1]}, {});
  const Translation before = testing::unchanged("the dog");
  EXPECT_EQ(steps.line(0, {"der Hund"}, nullptr, 2).name, "");
  EXPECT_EQ(steps.line(1, {"der Hund"}, &before, 2).name, "line 3, model 2");
  EXPECT_EQ(steps.line(1, {"der Hund"}, &before).name, "model 2");
  SourceLine named{"der Hund"};
  named.name = "a.txt, line 1";
  EXPECT_EQ(steps.line(1, named, &before, 2).name, "a.txt, line 1, model 2");

  std::string long_text = "the dog";
  for (size_t i = 0; i < 40; i++) long_text += " sees the cat";
  const Translation longer = testing::unchanged(long_text);
  Line line;
  line.number = 2;
  line.source = steps.line(1, {"der Hund"}, &longer, line.number);
  steps.read(1, line);
  ASSERT_EQ(line.notes.size(), 1u);
  EXPECT_TRUE(line.notes.front().starts_with("line 3, model 2: longer than ")) << line.notes.front();
}

TEST_F(PivotTest, InvalidTextInBetweenIsRepairedInLinearTime) {
  const PivotTranslator two = chain();
  const PivotSteps steps({&two.translators()[0], &two.translators()[1]}, {});
  constexpr size_t kBytes = 400'000;
  std::string text = "a\xe2\x82\xff" + std::string(kBytes, '\xff') + "\xe2\x82\xac";
  const Translation before = testing::unchanged(text);
  const std::string read = steps.line(1, {"x"}, &before).text;
  std::string wanted = "a\uFFFD\uFFFD\uFFFD";
  for (size_t i = 0; i < kBytes; i++) wanted += "\uFFFD";
  EXPECT_TRUE(read == wanted + "\u20AC") << read.size();
}

TEST_F(PivotTest, TheSourcePrefixOfTheResultIsThatOfTheFirstModel) {
  const PivotTranslator two = chain();
  std::vector<TranslateOptions> options = short_options();
  options[1].source_prefix = "the cat: ";
  const Translation found = two.translate({"the dog sees the cat"}, options).front();
  EXPECT_EQ(two.translators()[1].translate({"the dog"}, options[1]).front().source_prefix, "the cat: ");
  EXPECT_EQ(found.source_prefix, "");
}

TEST_F(PivotTest, AnErrorNamesTheLineOnce) {
  const PivotTranslator two = chain();
  const std::string error = error_of([&] { two.translate({kText[0], "the \xff dog"}); });
  EXPECT_TRUE(error.starts_with("line 2: byte 5 is not valid UTF-8")) << error;
}

// ---- The results of the steps as one

TEST(JoinedSteps, AlignmentsMeetInTheTextInBetween) {
  // The models cut the text in between in different ways.
  const Translation before =
                        testing::translation({"▁der", "▁alte", "▁Hund"}, {"▁the", "▁o", "ld", "▁dog"}, {0, 1, 1, 2}),
                    last = testing::translation({"▁the", "▁old", "▁d", "og"}, {"▁le", "▁chien", "▁âgé"}, {0, 3, 1});
  const Translation joined = joined_steps(before, last);
  EXPECT_EQ(joined.source, "der alte Hund");
  EXPECT_EQ(joined.pivot, std::vector<std::string>{"the old dog"});
  EXPECT_EQ(joined.hypotheses.front().alignment, (std::vector<Alignment>{{0, 0}, {2, 1}, {1, 2}}));
  EXPECT_EQ(joined.text(), "le chien âgé");
}

TEST(JoinedSteps, TokensOfASourcePrefixAreNotThoseOfTheText) {
  const Translation before =
      testing::translation({"▁ich", "▁will", "▁gehen"}, {"▁I", "▁want", "▁to", "▁go"}, {0, 1, 2, 2});
  const std::vector<std::string> prefix = {"▁translate", "▁English", "▁to", "▁French", ":"};
  std::vector<std::string> read = prefix;
  for (const char* token : {"▁I", "▁want", "▁to", "▁go", "</s>"}) read.emplace_back(token);
  Translation last = testing::translation(read, {"▁je", "▁veux", "▁aller", "▁x"}, {5, 6, 7, 2});
  last.source = "I want to go", last.source_prefix = "translate English to French: ";
  const auto alignment = joined_steps(before, last).hypotheses.front().alignment;
  EXPECT_EQ(alignment, (std::vector<Alignment>{{0, 0}, {1, 1}, {2, 2}, {0, 3}}));
}

TEST(JoinedSteps, ScoresAreAddedAndNotesFollow) {
  Translation before = testing::unchanged("a"), last = testing::unchanged("b");
  before.hypotheses.front().score = -1, before.hypotheses.front().log_probability = -3;
  last.hypotheses.resize(2);
  last.hypotheses[0].score = -0.5, last.hypotheses[1].score = -2, last.hypotheses[1].log_probability = -4;
  before.notes = {"first"}, last.notes = {"second"};
  const Translation joined = joined_steps(before, last);
  EXPECT_EQ(joined.hypotheses[0].score, -1.5);
  EXPECT_EQ(joined.hypotheses[1].score, -3);
  EXPECT_EQ(joined.hypotheses[1].log_probability, -7);
  EXPECT_EQ(joined.notes, (std::vector<std::string>{"first", "second"}));
}

TEST(JoinedSteps, SentencesAreThoseOfTheFirstText) {
  const auto joined = [](std::vector<SentencePair> first, std::vector<SentencePair> second, const std::string& text) {
    Translation before = testing::unchanged("source"), last = testing::unchanged(text);
    before.hypotheses.front().sentences = std::move(first), last.hypotheses.front().sentences = std::move(second);
    return joined_steps(before, last).hypotheses.front().sentences;
  };
  const std::vector<SentencePair> first = {{"Eins.", "One. Two."}, {"Drei.", "Three."}};
  EXPECT_EQ(joined(first, {{"One.", "Un."}, {"Two.", "Deux."}, {"Three.", "Trois."}}, "One. Two. Three."),
            (std::vector<SentencePair>{{"Eins.", "Un. Deux."}, {"Drei.", "Trois."}}));
  EXPECT_EQ(joined(first, {{"One.", "Un."}, {"Two. Three.", "Deux trois."}}, "One. Two. Three."),
            std::vector<SentencePair>());
  EXPECT_EQ(joined(first, {}, "One. Two. Three."), std::vector<SentencePair>());
  EXPECT_EQ(joined({}, {{"One.", "Un."}, {"Two.", "Deux."}}, "One. Two."), std::vector<SentencePair>());
}

TEST(PartsToKeep, AreProtectedAsOftenAsTheyAreListed) {
  const auto parts_of = [](const std::string& text, const std::vector<std::string>& keep,
                           std::vector<ProtectedPart> parts = {}) {
    protect_again(text, keep, parts);
    std::vector<std::string> found;
    for (const ProtectedPart& part : parts) found.push_back(text.substr(part.begin, part.end - part.begin));
    return found;
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(parts_of("a %s b", {"%s"}), Strings{"%s"});
  EXPECT_EQ(parts_of("a %s b", {"%s", "%s"}), Strings{"%s"});
  EXPECT_EQ(parts_of("%s %s %s", {"%s", "%s"}), (Strings{"%s", "%s"}));
  EXPECT_EQ(parts_of("a b", {"%s", ""}), Strings());
  EXPECT_EQ(parts_of("x 12.5 km y", {"12.5 km"}, {{2, 9}}), Strings{"12.5 km"});       // it is protected already
  EXPECT_EQ(parts_of("x (12.5 km) y", {"12.5 km"}, {{2, 11}}), Strings{"(12.5 km)"});  // with more around it
  std::vector<ProtectedPart> parts;
  protect_again("tag ta", Strings{"ta"}, parts);
  EXPECT_EQ(parts, (std::vector<ProtectedPart>{{4, 6}}));  // the word, not a part of another one
}

// Comparing each of 50 parts of up to 20 KB at each byte would read 170 GB.
TEST(PartsToKeep, LongTextsWithManyPartsTakeShortTime) {
  std::string text(100'000, 'a');
  std::vector<std::string> keep;
  for (size_t i = 1; i <= 50; i++) keep.push_back(std::string(400 * i, 'a') + "b");
  for (size_t i = 0; i < 50; i += 2) text += " " + keep[i];
  text += std::string(20'000, 'a');
  std::vector<ProtectedPart> parts;
  EXPECT_LT(testing::processor_seconds([&] { protect_again(text, keep, parts); }), 5);
  ASSERT_EQ(parts.size(), 25u);
  for (size_t i = 0; i < parts.size(); i++)
    EXPECT_EQ(text.substr(parts[i].begin, parts[i].end - parts[i].begin), keep[2 * i]);
}

TEST(PartsToKeep, LongerPartsComeFirstAndNoneOverlap) {
  std::vector<ProtectedPart> parts = {{0, 2}};
  const std::vector<std::string> keep = {"ab", "abc", "bc", "ab", "xx"};
  protect_again("xx abc ab bc", keep, parts);
  EXPECT_EQ(parts, (std::vector<ProtectedPart>{{0, 2}, {3, 6}, {7, 9}, {10, 12}}));
}

}  // namespace
}  // namespace qkv
