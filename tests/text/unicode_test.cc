// UTF-8: characters that are not whole, normal forms.
#include "text/unicode.h"

#include <gtest/gtest.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>

#include <random>
#include <vector>

namespace qkv {
namespace {

// The normal form of Unicode 9 by ICU alone.
std::string by_icu(const icu::Normalizer2* (*form)(UErrorCode&), const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeSet known(u"[:age=9.0:]", status);
  std::string normal;
  icu::StringByteSink<std::string> sink(&normal);
  icu::FilteredNormalizer2(*form(status), known).normalizeUTF8(0, text, sink, nullptr, status);
  EXPECT_TRUE(U_SUCCESS(status));
  return normal;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; i++) all += text;
  return all;
}

TEST(Unicode, TheBeginningOfACharacterIsNotWhole) {
  EXPECT_EQ(whole_characters(""), 0u);
  EXPECT_EQ(whole_characters("ab"), 2u);
  const std::string text = "a\u00E9\u20AC\U0001F600";
  const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};  // of the first 0, 1, … bytes
  for (size_t length = 0; length <= text.size(); length++)
    EXPECT_EQ(whole_characters(std::string_view(text).substr(0, length)), whole[length]) << length;
  EXPECT_EQ(whole_characters("a\xFF"), 2u);  // begins no character
  EXPECT_EQ(whole_characters("a\x80\x80\x80\x80\x80"), 6u);
}

TEST(Unicode, NormalFormsAreThoseOfUnicode9) {
  EXPECT_EQ(compose("e\u0301q\u0301\u0316"), "\u00E9q\u0316\u0301");
  EXPECT_EQ(decompose("\u00E9\uAC01"), "e\u0301\u1100\u1161\u11A8");
  EXPECT_EQ(compose("q\u0301\u0D3B"), "q\u0301\u0D3B");  // which Unicode 10 moves before the accent
}

// Runs of marks of many classes: those that are two marks, that compose, that Unicode 9 lacks, and that are marks in
// one form only.
TEST(Unicode, LongRunsOfMarksHaveTheOrderOfIcu) {
  const std::vector<std::string> marks = {"\u0300", "\u0301", "\u0316", "\u0327", "\u0344", "\u0345",
                                          "\u035C", "\u0591", "\u064B", "\u0651", "\u093C", "\u0F71",
                                          "\u0F72", "\u0F73", "\u0F74", "\u0F75", "\u0F81", "\u1DCE",
                                          "\u1DF6", "\u20D0", "\u3099", "\uFF9E", "\uFF9F", "\u0D3B"};
  const std::vector<std::string> others = {"e",      "\u00E9",     "\u304B", "\u1100", "\u1161",
                                           "\uFFFF", "\U0001F600", "\u0D3E", " "};
  std::mt19937 random(1);
  const auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  for (int text = 0; text < 300; text++) {
    std::string all;
    for (size_t part = random() % 4; part < 5; part++) {
      all += pick(others);
      const size_t kinds = 1 + random() % marks.size();
      for (size_t length = random() % 150; length > 0; length--) all += marks[(text + random() % kinds) % marks.size()];
    }
    EXPECT_EQ(compose(all), by_icu(icu::Normalizer2::getNFCInstance, all));
    EXPECT_EQ(decompose(all), by_icu(icu::Normalizer2::getNFDInstance, all));
    EXPECT_EQ(strip_accents(all), strip_accents(by_icu(icu::Normalizer2::getNFKDInstance, all)));
  }
}

// With n² moves for n marks this would take hours.
TEST(Unicode, AMillionMarksTakeNoLongerThanAMillionLetters) {
  constexpr int kTimes = 1 << 19;
  for (const std::string_view pair : {"\u0301\u0316", "\u0301\u0F73", "\u0301\uFF9E\u0345"}) {
    const std::string text = "q" + repeated(pair, kTimes);
    EXPECT_GE(compose(text).size(), text.size());
    EXPECT_EQ(decompose(text).size(), decompose(std::string(pair)).size() * kTimes + 1);
    EXPECT_EQ(strip_accents(text), "q");
  }
}

}  // namespace
}  // namespace qkv
