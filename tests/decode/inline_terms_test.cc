// Translations of terms in the source.
#include "decode/terms/inline_terms.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/decode/random_run.h"
#include "text/stand_in_characters.h"

namespace qkv {
namespace {

const std::string kBefore{kTermMarks[0]}, kAfter{kTermMarks[1]};
const TermMarks kMarks{kBefore, kAfter, 8, 9};

TEST(InlineTermsTest, FollowTheirTerms) {
  const Glossary glossary = Glossary::parse("bike | bikes\tFahrrad | Rad\nold dog\talter Hund\n", "terms");
  EXPECT_EQ(with_inline_terms("Two bikes, an old dog.", glossary, kMarks),
            "Two bikes" + kBefore + " Fahrrad" + kAfter + ", an old dog" + kBefore + " alter Hund" + kAfter + ".");
  EXPECT_EQ(with_inline_terms("A cat.", glossary, kMarks), "A cat.");
  EXPECT_EQ(with_inline_terms("a dog", Glossary::parse("dog\tx" + kAfter + "y", "terms"), kMarks), "a dog");
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

}  // namespace
}  // namespace qkv
