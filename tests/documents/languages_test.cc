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

}  // namespace
}  // namespace qkv
