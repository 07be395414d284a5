#include "documents/detect.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

using Detected = std::vector<DetectedLanguage>;

OfferedLanguage with_tokens(const std::string& code, size_t tokens) {
  return {code, [tokens](const std::string&) { return tokens; }};
}

TEST(DetectLanguage, FewestTokensComeFirstWithTheirShare) {
  // 12 characters: 3, 4 and 1 for each token.
  const std::vector<OfferedLanguage> languages = {with_tokens("en", 4), with_tokens("de", 3), with_tokens("fr", 12)};
  EXPECT_EQ(detect_language("über  sieben\n", languages).size(), 3u);
  const Detected detected = detect_language("acht und\u00A0zwölf", languages);
  EXPECT_EQ(detected[0].code, "de");
  EXPECT_DOUBLE_EQ(detected[0].confidence, 50);
  EXPECT_EQ(detected[1].code, "en");
  EXPECT_DOUBLE_EQ(detected[1].confidence, 37.5);
  EXPECT_EQ(detected[2].code, "fr");
  EXPECT_DOUBLE_EQ(detected[2].confidence, 12.5);
}

TEST(DetectLanguage, OneLanguageIsNotMeasured) {
  bool is_called = false;
  const std::vector<OfferedLanguage> one = {{"en", [&](const std::string&) { return is_called = true, 1u; }}};
  EXPECT_EQ(detect_language("Hallo", one), (Detected{{"en", 0}}));
  EXPECT_FALSE(is_called);
  EXPECT_EQ(detect_language("Hallo", {}), Detected());
}

TEST(DetectLanguage, TextsWithoutTokensKeepTheOrderOfTheLanguages) {
  const std::vector<OfferedLanguage> languages = {with_tokens("en", 0), with_tokens("de", 0)};
  EXPECT_EQ(detect_language(" ", languages), (Detected{{"en", 0}, {"de", 0}}));
}

TEST(DetectLanguage, EachUnknownCharacterIsAToken) {
  EXPECT_EQ(count_tokens("two dogs", std::vector<std::string>{"▁two", "▁", "dog", "s"}, "<unk>"), 3u);
  EXPECT_EQ(count_tokens("zwei Füchse", std::vector<std::string>{"▁z", "w", "<unk>", "▁F", "<unk>"}, "<unk>"), 3u + 7);
  EXPECT_EQ(count_tokens("猫が", std::vector<std::string>{"▁", "<unk>"}, "<unk>"), 2u);
  EXPECT_EQ(count_tokens("lower x", std::vector<std::string>{"low@@", "er", "?"}, "?"), 3u);
  EXPECT_EQ(count_tokens("…", std::vector<std::string>{"..."}, "<unk>"), 1u);  // normalized
  EXPECT_EQ(count_tokens("", {}, "<unk>"), 0u);
}

}  // namespace
}  // namespace qkv
