#include "documents/languages.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(LanguageNames, CodesHaveOneSpelling) {
  for (const auto& [text, code] : std::vector<std::pair<const char*, const char*>>{{"de", "de"},
                                                                                   {"EN", "en"},
                                                                                   {"PT-br", "pt-BR"},
                                                                                   {"zh-hANS", "zh-Hans"},
                                                                                   {"sr-Latn-RS", "sr-Latn-RS"},
                                                                                   {"es-419", "es-419"},
                                                                                   {"und", "und"},
                                                                                   {"gsw", "gsw"},
                                                                                   {"pb", "pt-BR"},
                                                                                   {"zt", "zh-Hant"},
                                                                                   {"zh", "zh-Hans"},
                                                                                   {"zh-TW", "zh-TW"}})
    EXPECT_EQ(language_code(text), code);
  for (const char* text : {"", "d", "auto", "de-", "-de", "de_DE", "de-D", "de-DE-x", "de--DE", "d1", "de-12", "dé",
                           "de-Latn-Latn", "english", "zh-Hans-CN-x-y"})
    EXPECT_EQ(language_code(text), std::nullopt) << text;
  EXPECT_TRUE(is_same_language("zh", "ZH-hans") && is_same_language("pb", "pt-BR"));
  EXPECT_FALSE(is_same_language("pt", "pt-BR") || is_same_language("?", "?"));
}

TEST(LanguageNames, NamesAreEnglish) {
  for (const auto& [code, name] : std::vector<std::pair<const char*, const char*>>{{"de", "German"},
                                                                                   {"en", "English"},
                                                                                   {"nb", "Norwegian Bokmål"},
                                                                                   {"pt-BR", "Portuguese (Brazil)"},
                                                                                   {"pb", "Portuguese (Brazil)"},
                                                                                   {"zh-Hant", "Chinese (Traditional)"},
                                                                                   {"eo", "Esperanto"},
                                                                                   {"gsw", "Swiss German"},
                                                                                   {"und", "und"},
                                                                                   {"xq", "xq"},
                                                                                   {"auto", "auto"}})
    EXPECT_EQ(language_name(code), name);
}

TEST(LanguageNames, PairsAreTwoCodes) {
  EXPECT_EQ(parse_language_pair("en-de"), (LanguagePair{"en", "de"}));
  EXPECT_EQ(parse_language_pair("pt-BR-en"), (LanguagePair{"pt-BR", "en"}));
  EXPECT_EQ(parse_language_pair("en-zh-Hans"), (LanguagePair{"en", "zh-Hans"}));
  EXPECT_EQ(parse_language_pair("zt-pb"), (LanguagePair{"zh-Hant", "pt-BR"}));
  EXPECT_EQ(parse_language_pair("und-und"), LanguagePair());
  for (const char* text : {"", "en", "en-", "-de", "en-DE", "en-de-fr-es", "english-german", "en_de"})
    EXPECT_EQ(parse_language_pair(text), std::nullopt) << text;
}

TEST(LanguageNames, PathsEndInAPairOrAreUnknown) {
  for (const char* path : {"en-de", "runs/m30k-en-de", "/x/opus_en-de/", "a.en-de//"})
    EXPECT_EQ(languages_of_path(path), (LanguagePair{"en", "de"})) << path;
  EXPECT_EQ(languages_of_path("zt-pb"), (LanguagePair{"zh-Hant", "pt-BR"}));
  for (const char* path : {"", "/", "m30k", "runs/en-de/last", "xen-de", "3en-de", "my-lm", "en-DE", "e-de", "big-run"})
    EXPECT_EQ(languages_of_path(path), LanguagePair()) << path;
}

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
