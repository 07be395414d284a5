// A translator that knows how long the pairs of its training text are: it cuts longer sentences, and translates the
// clauses of a sentence whose translation is too short.
#include "io/runs/sentence_lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "decode/engine/client_turns.h"
#include "qkv/serving.h"
#include "qkv/translator.h"
#include "tests/decode/random_run.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::spill;

class SentenceLengthsTest : public ::testing::Test {
 protected:
  // Translations mostly end before max_length.
  SentenceLengthsTest()
      : path_(testing::make_random_run(directory_ / "run", [](testing::Searcher& s, const Tokenizer&) {
          s.parameter("output.bias")[testing::kEnd] = 3;
        })) {
    options.beam = 2;
  }

  Translation translate(const std::string& line) const { return Translator(path_).translate({line}, options).front(); }
  std::string text(const std::string& line) const { return translate(line).text(); }
  int64_t tokens(const std::string& line) const { return std::ssize(Translator(path_).tokenize(line)); }
  // Returns the number of tokens, or -1 for a translation that max_length ends.
  static int64_t length(const Translation& t) {
    const Hypothesis& h = t.hypotheses.front();
    return h.token_scores.size() > h.tokens.size() ? std::ssize(h.tokens) : -1;
  }
  void set(const SentenceLengths& lengths) const { write_sentence_lengths(RunDirectory(path_), lengths); }
  // Sets lengths by which a translation with fewer than `ratio` tokens for each of the source is too short.
  void expect_at_least(double ratio) const { set({30, ratio, 0}); }

  // The translation of a text by the server's loop.
  Translation translate_by_loop(const std::string& line) const {
    const Translator translator(path_);
    TranslationLoop loop(translator, {.rows = 64});
    std::optional<Translation> found;
    loop.add(loop.prepare({line}, options), {.on_done = [&](Translation&& t) { found = std::move(t); }});
    while (!found && loop.step()) {
    }
    return found.value();
  }

  testing::TempDir directory_;
  const std::string path_;
  TranslateOptions options;
};

TEST_F(SentenceLengthsTest, ASentenceLongerThanThoseOfTheTrainingIsCutAtClauses) {
  const std::string first = "the dog sees the cat,", second = "a man reads a book";
  const std::string whole = text(first + " " + second);
  const int64_t both = tokens(first + " " + second);
  set({both, 0, 0});
  EXPECT_EQ(text(first + " " + second), whole);
  set({both - 1, 0, 0});
  const Translation cut = translate(first + " " + second);
  EXPECT_EQ(cut.text(), text(first) + " " + text(second));
  ASSERT_EQ(cut.notes.size(), 1u);
  EXPECT_EQ(cut.notes.front(), "line 1: longer than the " + std::to_string(both - 1) +
                                   " tokens that the model was trained for, split into 2 parts");
  options.sentences = Sentences::line;
  EXPECT_EQ(text(first + " " + second), whole);
  options.sentences = Sentences::automatic;
  options.alternatives = true;
  EXPECT_TRUE(translate(first + " " + second).notes.empty());
  options.alternatives = false;
  EXPECT_TRUE(Translator(path_).translate({first + " " + second}, options, {"a"}).front().notes.empty());
}

TEST_F(SentenceLengthsTest, ACharacterOfMoreTokensIsAPartByItself) {
  set({1, 0, 0});
  EXPECT_EQ(translate("the ﷺ dog").hypotheses.size(), 1u);  // 18 letters in form KC
  set({1, 1000, 0});
  EXPECT_EQ(translate("the ﷺ dog").hypotheses.size(), 1u);
}

TEST_F(SentenceLengthsTest, ASourcePrefixCountsForNoLength) {
  const std::string sentence = "the dog sees the cat";
  set({tokens(sentence), 0, 0});
  options.source_prefix = "a dog reads a book: ";
  EXPECT_TRUE(translate(sentence).notes.empty());
  expect_at_least(1000);
  options.source_prefix = "a a a a a a a a a a a ";
  const Translator translator(path_);
  TranslationLoop loop(translator, {.rows = 64});
  int done = 0;
  for (const std::string text : {"a cat", "a", sentence.c_str()})
    loop.add(loop.prepare({text}, options), {.on_done = [&](Translation&&) { done++; }});
  while (loop.step()) {
  }
  EXPECT_EQ(done, 3);
}

TEST_F(SentenceLengthsTest, ATextOfNothingButSpacesHasNoTokensBehindAPrefix) {
  options.source_prefix = "the dog: ";
  for (const std::string line : {"", " ", "\u3000", " \t "}) EXPECT_EQ(text(line), line);
  options.source_prefix = "x";  // unknown, and one token with what is unknown after it
  EXPECT_FALSE(translate("x").source_tokens.empty());
  EXPECT_EQ(translate("the dog").source_prefix, "x");
}

TEST_F(SentenceLengthsTest, ALongTextCanBeStoppedBetweenSentences) {
  std::string line;
  for (int i = 0; i < 300; i++) line += "a cat. ";
  int calls = 0;
  options.max_length = 1;
  options.on_progress = [&](int64_t) {
    if (++calls == 300) throw std::runtime_error("stopped");
  };
  EXPECT_THROW(translate(line), std::runtime_error);
}

TEST_F(SentenceLengthsTest, AnUntranslatedSentenceIsReported) {
  std::vector<std::string> lines;
  for (const std::string& line : testing::kText)
    if (length(translate(line)) >= 0) lines.push_back(line);
  ASSERT_GE(lines.size(), 2u);
  expect_at_least(1000);
  const Translation t = translate(lines[0] + "\n" + lines[1]);
  const Hypothesis& h = t.hypotheses.front();
  ASSERT_EQ(h.sentences.size(), 2u);
  EXPECT_EQ(h.untranslated, h.sentences);
  ASSERT_EQ(t.notes.size(), 2u);
  EXPECT_TRUE(t.notes[0].starts_with("line 1: the translation of \"" + lines[0] + "\" looks incomplete: \""))
      << t.notes[0];
  std::vector<std::pair<int64_t, SentencePair>> reported;
  options.on_untranslated = [&](int64_t line, const SentencePair& sentence) { reported.emplace_back(line, sentence); };
  Translator(path_).translate({"", "  " + lines[0] + " "}, options);
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].first, 1);
  EXPECT_EQ(reported[0].second, h.untranslated[0]);  // without the spaces
  expect_at_least(0);
  EXPECT_TRUE(translate(lines[0]).hypotheses.front().untranslated.empty());
}

// A sentence of two clauses whose translations have together more tokens than that of the whole, with limits between.
TEST_F(SentenceLengthsTest, ClausesAreTranslatedIfTheTranslationIsTooShort) {
  int found = 0;
  for (const std::string& first : testing::kText)
    for (const std::string& second : testing::kText) {
      std::filesystem::remove(RunDirectory(path_).lengths());
      const std::string sentence = first + ", " + second;
      const Translation whole = translate(sentence), before = translate(first + ","), after = translate(second);
      const int64_t half = std::max(tokens(first + ", "), tokens(second)), target = length(whole),
                    more = length(before) + length(after);
      if (more <= target || 2 * half > tokens(sentence) + 1 || target < 0 || length(before) < 1 || length(after) < 1)
        continue;
      found++;
      const auto expect_tokens = [&](int64_t least) {
        set({30, (static_cast<double>(least) - 0.5) / static_cast<double>(tokens(sentence)), 0});
      };
      expect_tokens(target + 1);
      const Translation again = translate(sentence);
      EXPECT_EQ(again.text(), before.text() + " " + after.text()) << sentence;
      EXPECT_TRUE(again.hypotheses.front().untranslated.empty());
      ASSERT_EQ(again.notes.size(), 1u);
      EXPECT_EQ(again.notes[0], "line 1: the translation was too short, so it is translated in 2 parts");
      const Translation served = translate_by_loop(sentence);
      EXPECT_EQ(served.text(), again.text());
      EXPECT_EQ(served.hypotheses.front().tokens, again.hypotheses.front().tokens);
      EXPECT_EQ(served.hypotheses.front().score, again.hypotheses.front().score);
      expect_tokens(more + 1);
      EXPECT_EQ(text(sentence), whole.text());  // the clauses are too short, too
      EXPECT_EQ(translate_by_loop(sentence).text(), whole.text());
      EXPECT_EQ(translate_by_loop(sentence).hypotheses.front().untranslated.size(), 1u);
    }
  EXPECT_GT(found, 0);
}

TEST_F(SentenceLengthsTest, ClausesTakeTurnsWithTheTextsOfOtherClients) {
  std::string sentence;  // of two clauses, whose translation ends
  for (const std::string& first : testing::kText)
    for (const std::string& second : testing::kText)
      if (2 * std::max(tokens(first + ", "), tokens(second)) <= tokens(first + ", " + second) + 1 &&
          length(translate(first + ", " + second)) > 0)
        sentence = first + ", " + second;
  ASSERT_FALSE(sentence.empty());
  expect_at_least(1000);
  const Translator translator(path_);
  TranslationLoop loop(translator, {.rows = options.beam});  // for one sentence at a time
  std::vector<std::string> ended;
  int64_t more = 0;
  const auto add = [&](const std::string& client, const std::string& line) {
    TranslationLoop::Prepared text = loop.prepare({line}, options);
    text.client = client;
    loop.add(std::move(text), {.on_more = [&](int64_t cost) { more += cost; },
                               .on_done = [&, client](Translation&&) { ended.push_back(client); }});
  };
  std::string lines;
  for (int i = 0; i < 60; i++) lines += sentence + "\n";
  add("many", lines);
  while (more == 0 && loop.step()) {
  }
  EXPECT_GT(more, 2 * ClientTurns::kQuantum);
  EXPECT_TRUE(ended.empty());
  add("few", "a cat");
  while (loop.step()) {
  }
  EXPECT_EQ(ended, (std::vector<std::string>{"few", "many"}));
}

TEST_F(SentenceLengthsTest, ATranslationThatMaxLengthEndsIsNotTooShort) {
  set({30, 1000, 0});
  options.max_length = 1;
  const Translation t = translate("the dog sees the cat, a man reads a book");
  EXPECT_EQ(length(t), -1);
  EXPECT_TRUE(t.notes.empty() && t.hypotheses.front().untranslated.empty());
}

TEST_F(SentenceLengthsTest, APartIsKeptInItsClause) {
  expect_at_least(1000);
  const std::string sentence = "the dog sees {x} the cat, the old cat sleeps, {y} a man reads a book";
  for (const Translation& t : {translate(sentence), translate_by_loop(sentence)}) {
    const std::string text = t.text();
    EXPECT_LT(text.find("{x}"), text.find("{y}")) << text;
    EXPECT_NE(text.find("{y}"), text.npos) << text;
  }
}

TEST_F(SentenceLengthsTest, AFileThatIsNotValidIsAnError) {
  const std::string file = RunDirectory(path_).lengths();
  for (const auto& [text, message] : {std::pair{R"({"longest": 0})", "longest must be between 1 and 16777216 (is 0)"},
                                      {R"({"longest": 9223372036854775807})", "longest"},
                                      {R"({"ratio": -1})", "ratio must be between 0 and 1000 (is -1)"},
                                      {R"({"least_deviation": 1e9})", "least_deviation"},
                                      {R"({"longest": "a"})", "longest"},
                                      {R"({"shortest": 1})", "shortest"},
                                      {"[]", "lengths.json"},
                                      {"", "lengths.json"}}) {
    spill(file, text);
    const std::string error = error_of([&] { Translator translator(path_); });
    EXPECT_NE(error.find(message), error.npos) << error;
    EXPECT_NE(error.find(file), error.npos) << error;
    EXPECT_EQ(error.find('\n'), error.npos) << error;
  }
}

}  // namespace
}  // namespace qkv
