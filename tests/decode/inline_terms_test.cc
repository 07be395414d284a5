// Translations of terms in the source.
#include "decode/terms/inline_terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/decode/random_run.h"
#include "text/stand_in_characters.h"

namespace qkv {
namespace {

const std::string kBefore{kTermMarks[0]}, kAfter{kTermMarks[1]};
const TermMarks kMarks{kBefore, kAfter, 8, 9};
const std::vector<std::string> kReserved = {kBefore, kAfter, std::string(kStandIns[0])};

TEST(InlineTermsTest, FollowTheirTerms) {
  const Glossary glossary = Glossary::parse("bike | bikes\tFahrrad | Rad\nold dog\talter Hund\n", "terms");
  EXPECT_EQ(with_inline_terms("Two bikes, an old dog.", glossary, kMarks, kReserved),
            "Two bikes" + kBefore + " Fahrrad" + kAfter + ", an old dog" + kBefore + " alter Hund" + kAfter + ".");
  EXPECT_EQ(with_inline_terms("A cat.", glossary, kMarks, kReserved), "A cat.");
  for (const std::string& reserved : kReserved)
    EXPECT_EQ(with_inline_terms("a dog", Glossary::parse("dog\tx" + reserved + "y", "terms"), kMarks, kReserved),
              "a dog");
}

TEST(InlineTermsTest, OwnTokensAreThoseOfTheText) {
  const std::vector<int32_t> source = {3, 8, 5, 6, 9, 4, 8, 7, 9, 2};
  const OwnTokens own(source, kMarks);
  EXPECT_EQ(own.of(source), (std::vector<int32_t>{3, 4, 2}));
  EXPECT_EQ(own.others(), 7u);
  std::vector<Alignment> alignment = {{0, 0}, {2, 1}, {5, 2}, {7, 3}, {9, 4}};
  std::vector<std::vector<float>> attention = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  own.apply(alignment, attention);
  EXPECT_EQ(alignment, (std::vector<Alignment>{{0, 0}, {0, 1}, {1, 2}, {1, 3}, {2, 4}}));
  EXPECT_EQ(attention.front(), (std::vector<float>{15, 30, 10}));
}

TEST(InlineTermsTest, AMarkWithoutTheOtherIsAToken) {
  for (const std::vector<int32_t>& source : {std::vector<int32_t>{3, 8, 5}, {3, 9, 5}, {8, 9, 5}})
    EXPECT_EQ(OwnTokens(source, kMarks).of(source), source);
}

TEST(InlineTermsTest, ATranslatorReadsThemAndReturnsTheSourceWithoutThem) {
  const testing::TempDir directory;
  const Translator translator(testing::make_stand_in_run(directory / "run"));
  const std::string line = "the dog sees the cat";
  TranslateOptions options;
  options.beam = 3;
  options.alignment = options.attention = true;
  const Translation plain = translator.translate({line}, options).front();
  options.glossary = "dog\tbook\ncat\tgarden\n";
  const Translation found = translator.translate({line}, options).front();
  EXPECT_EQ(found.source_tokens, plain.source_tokens);
  const Hypothesis& h = found.hypotheses.front();
  EXPECT_NE(h.text.find("book"), std::string::npos) << h.text;
  EXPECT_NE(h.text.find("garden"), std::string::npos) << h.text;
  EXPECT_EQ(h.text.find(kBefore), std::string::npos);
  ASSERT_EQ(h.alignment.size(), h.tokens.size());
  for (const Alignment& pair : h.alignment) EXPECT_LT(pair.source, std::ssize(found.source_tokens));
  for (const std::vector<float>& row : h.attention) EXPECT_EQ(row.size(), found.source_tokens.size());
  options.glossary = "zebra\tbook\n";
  EXPECT_EQ(translator.translate({line}, options).front().text(), plain.text());
}

// ---- The source that a translator reads

const std::string kLine = "the dog sees the cat";

class InlineTermsRunTest : public ::testing::Test {
 protected:
  // Translates kLine and returns its best hypothesis.
  Hypothesis translated(const std::string& glossary) const {
    TranslateOptions options;
    options.glossary = glossary;
    return translator_.translate({kLine}, options).front().hypotheses.front();
  }

  // Returns log p(first tokens of the hypothesis | source).
  double log_probability(const std::string& source, const Hypothesis& h) const {
    std::vector<std::string> tokens = h.tokens;
    tokens.resize(std::min<size_t>(tokens.size(), kTokens));
    return of_first(translator_.score({source}, {tokens}).front().hypotheses.front(), tokens.size());
  }
  static double log_probability(const Hypothesis& h) { return of_first(h, std::min<size_t>(h.tokens.size(), kTokens)); }

  static double of_first(const Hypothesis& h, size_t tokens) {
    double sum = 0;
    for (size_t i = 0; i < tokens; i++) sum += h.token_scores[i];
    return sum;
  }

  static constexpr size_t kTokens = 20;  // that the model can score
  const testing::TempDir directory_;
  const Translator translator_{testing::make_stand_in_run(directory_ / "run", 2)};
};

TEST_F(InlineTermsRunTest, TheModelReadsThem) {
  const Hypothesis h = translated("dog\tbook\ncat\tgarden\n");
  const std::string read = "the dog" + kBefore + " book" + kAfter + " sees the cat" + kBefore + " garden" + kAfter;
  EXPECT_NEAR(log_probability(h), log_probability(read, h), 1e-3);
  EXPECT_GT(std::abs(log_probability(h) - log_probability(kLine, h)), 1e-2);
}

TEST_F(InlineTermsRunTest, ALongerSourceThanTheModelReadsIsReadWithoutThem) {
  std::string translation = "book";
  for (int i = 0; i < 14; i++) translation += " book";
  const Hypothesis h = translated("dog\t" + translation + "\n");
  EXPECT_NEAR(log_probability(h), log_probability(kLine, h), 1e-3);
}

TEST_F(InlineTermsRunTest, TargetsWithReservedCharactersAreMissing) {
  for (const std::string& reserved : kReserved) {
    const Hypothesis h = translated("dog\tbook" + reserved + "\n");
    EXPECT_EQ(h.missing_terms, std::vector<std::string>{"dog"});
    EXPECT_NEAR(log_probability(h), log_probability(kLine, h), 1e-3);
    EXPECT_EQ(h.text.find(reserved), h.text.npos);
    EXPECT_TRUE(translated("dog\tbook" + reserved + " | book\n").missing_terms.empty());
  }
}

}  // namespace
}  // namespace qkv
