// Protected parts and glossaries of a translator.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "qkv/translator.h"
#include "tests/decode/random_run.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::kText;

class TermsTest : public ::testing::Test {
 protected:
  TermsTest() : translator(testing::make_random_run(directory / "run")) { options.beam = 3; }

  Translation translate(const std::string& line) const { return translator.translate({line}, options).front(); }
  Hypothesis best(const std::string& line) const { return translate(line).hypotheses.front(); }

  testing::TempDir directory;
  Translator translator;
  TranslateOptions options;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) found++;
  return found;
}

// ---- Protected parts

TEST_F(TermsTest, ProtectedPartsAreKeptAndTheRestIsTranslatedAsWithoutThem) {
  const Hypothesis rest = best("the dog sees the cat");
  for (const std::string part :
       {"https://example.org/a?b=1", "{name}", "%(count)d", "`x = 1`", "12.5 km", "名前@例.jp"}) {
    options.protect = "名前@例\\.jp";
    for (const std::string& line : {part + " the dog sees the cat", "the dog " + part + " sees the cat",
                                    "the dog sees (" + part + ") the cat", "the dog sees the cat " + part}) {
      const Hypothesis found = best(line);
      EXPECT_EQ(count(found.text, part), 1u) << line << " → " << found.text;
      EXPECT_EQ(found.score, rest.score) << line;
      EXPECT_EQ(found.log_probability, rest.log_probability) << line;
      EXPECT_EQ(found.tokens.size(), rest.tokens.size() + 1) << line;
      EXPECT_EQ(found.token_scores.size(), rest.token_scores.size() + 1) << line;
    }
  }
}

TEST_F(TermsTest, APartIsATokenOfBothSidesAlignedWithItself) {
  options.alignment = options.attention = true;
  const Translation t = translate("the dog {x} sees the cat");
  const Hypothesis& h = t.hypotheses.front();
  const auto source = std::ranges::find(t.source_tokens, "{x}") - t.source_tokens.begin();
  const auto target = std::ranges::find(h.tokens, "{x}") - h.tokens.begin();
  ASSERT_LT(source, std::ssize(t.source_tokens));
  ASSERT_LT(target, std::ssize(h.tokens));
  const Alignment itself{static_cast<int32_t>(source), static_cast<int32_t>(target)};
  EXPECT_EQ(std::ranges::count(h.alignment, itself), 1);
  ASSERT_EQ(h.alignment.size(), h.tokens.size());
  ASSERT_EQ(h.attention.size(), h.tokens.size());
  for (const std::vector<float>& row : h.attention) ASSERT_EQ(row.size(), t.source_tokens.size());
  EXPECT_EQ(h.attention[to_size(target)][to_size(source)], 1);
}

TEST_F(TermsTest, TextWithoutWordsStaysAsItIs) {
  for (const std::string line : {"https://example.org/a", " {a}, {b}! ", "%s: %d"}) EXPECT_EQ(best(line).text, line);
  const std::string text = "the dog sees the cat . https://example.org/a ! a dog reads";
  options.sentences = Sentences::automatic;
  EXPECT_EQ(count(best(text).text, "https://example.org/a"), 1u);
}

TEST_F(TermsTest, NoSentenceEndsWithinAPart) {
  const std::string part = "{n, plural, one {A dog. A cat.} other {# dogs. Cats.}}";
  const Hypothesis found = best("the dog sees " + part + " the cat . A dog reads .");
  EXPECT_EQ(count(found.text, part), 1u);
  EXPECT_EQ(found.sentences.size(), 2u);
  EXPECT_EQ(best("{n, plural, one {A dog. A cat.} other {# dogs. Cats.}}").text, part);
}

TEST_F(TermsTest, PartsOfALongSentenceReturnInTheirOrder) {
  std::string line;
  for (int i = 0; i < 12; i++) line += "the dog sees {x" + std::to_string(i) + "} the cat, ";
  const std::string text = best(line).text;
  size_t before = 0;
  for (int i = 0; i < 12; i++) {
    const size_t at = text.find("{x" + std::to_string(i) + "}");
    ASSERT_NE(at, text.npos) << i;
    EXPECT_GE(at, before);
    before = at;
  }
}

TEST_F(TermsTest, ProtectionMayBeTurnedOff) {
  options.protected_parts = ProtectedParts::none;
  EXPECT_EQ(count(best("the dog {x} sees the cat").text, "{x}"), 0u);
  options.protect = "[{]x[}]";
  EXPECT_EQ(count(best("the dog {x} sees {y} the cat").text, "{x}"), 1u);
}

TEST_F(TermsTest, EveryHypothesisHasTheParts) {
  options.n_best = 3;
  for (const Hypothesis& h : translate("the dog {x} sees the cat").hypotheses) EXPECT_EQ(count(h.text, "{x}"), 1u);
  options.sampling = true;
  for (const Hypothesis& h : translate("the dog {x} sees the cat").hypotheses) EXPECT_EQ(count(h.text, "{x}"), 1u);
}

TEST_F(TermsTest, ErrorsOfAPattern) {
  options.protect = "a(";
  EXPECT_EQ(error_of([&] { translator.translate(std::vector<std::string>(), options); }),
            "protect: the regular expression \"a(\" is not supported: a ( without ), at byte 3");
}

// ---- Glossary

TEST_F(TermsTest, TermsOfTheGlossaryAreInTheTranslation) {
  options.glossary = "dog\tgarden\ncat\tbook | sleeps\n";
  const std::vector<Translation> all = translator.translate({kText[0], kText[3], kText[1]}, options);
  EXPECT_EQ(count(all[0].text(), "garden"), 1u) << all[0].text();
  EXPECT_TRUE(count(all[0].text(), "book") + count(all[0].text(), "sleeps") > 0) << all[0].text();
  EXPECT_TRUE(count(all[1].text(), "book") + count(all[1].text(), "sleeps") > 0) << all[1].text();
  for (const Translation& t : all) EXPECT_TRUE(t.hypotheses.front().missing_terms.empty());
  TranslateOptions without;
  without.beam = options.beam;
  EXPECT_EQ(all[2].text(), translator.translate({kText[1]}, without).front().text());
}

TEST_F(TermsTest, TermsThatCannotBeProducedAreReported) {
  options.glossary = "dog\t\u72ac\ncat\tbook\n";
  std::vector<std::string> notes;
  options.on_note = [&](const std::string& note) { notes.push_back(note); };
  const std::vector<Translation> all = translator.translate({kText[2], kText[0]}, options);
  EXPECT_EQ(all[1].hypotheses.front().missing_terms, std::vector<std::string>{"dog"});
  EXPECT_EQ(count(all[1].text(), "book"), 1u);
  EXPECT_EQ(notes, std::vector<std::string>{"line 2: the translation lacks the glossary's term for \"dog\""});
  options.max_length = 1;
  EXPECT_EQ(best("a cat").missing_terms.size(), 1u);
}

TEST_F(TermsTest, GlossaryErrors) {
  const auto error = [&] { return error_of([&] { translator.translate(std::vector<std::string>(), options); }); };
  options.glossary = "dog";
  EXPECT_TRUE(error().starts_with("glossary:1: ")) << error();
  options.glossary = "dog\tgarden";
  options.sampling = true;
  EXPECT_EQ(error(), "glossary cannot be combined with sampling");
  options.sampling = false;
  options.alternatives = true;
  EXPECT_EQ(error(), "glossary cannot be combined with alternatives");
  options.alternatives = false;
  options.beam = 1;
  options.on_token = [](const TokenReport&) { return false; };
  EXPECT_EQ(error(), "glossary cannot be combined with on_token");
}

}  // namespace
}  // namespace qkv
