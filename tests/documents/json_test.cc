#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "documents/strings/string_part.h"
#include "tests/documents/string_parts.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::StringDocument;
using Texts = std::vector<std::string>;

TEST(StringParts, WordsAreProseAndIdentifiersAreNot) {
  for (const char* text : {"Save", "Loading...", "Name:", "ubuntu-latest", "v2 of it", "Größe", "保存", " Save ",
                           "see https://a.b", "<b>Save</b>", "{count}", "a, b"})
    EXPECT_TRUE(is_prose(text)) << text;
  for (const char* text : {"", " ", "12", "1,5", "!?", "menu.file", "en_US", "#fff", "v2", "text/html", "@user", "a:b",
                           "https://a.b/c?d=é", "data:image/png;base64,iVBO=", "mailto:a@b.c", "2024-01-01T00:00:00Z"})
    EXPECT_FALSE(is_prose(text)) << text;
}

TEST(JsonFiles, StringsThatAreValuesAreTranslated) {
  const StringDocument document("json",
                                "\uFEFF{\"Menu\": {\"a\": \"Save\", \"b\" :[ \"Open it\",1, null,\"id_1\"]},\r\n"
                                "\t\"c\": \"He said \\\"no\\\"\", \"d\": true}\n");
  EXPECT_EQ(document.parts(), (Texts{"Save", "Open it", "He said \"no\""}));
  EXPECT_EQ(document.with({"Sichern", "Öffne \\ \"es\"", "x"}),
            "\uFEFF{\"Menu\": {\"a\": \"Sichern\", \"b\" :[ \"Öffne \\\\ \\\"es\\\"\",1, null,\"id_1\"]},\r\n"
            "\t\"c\": \"x\", \"d\": true}\n");
  EXPECT_EQ(document.with(document.parts()), document.document.texts()[0].bytes);
  EXPECT_EQ(StringDocument("json", "\"One text\"").marked(), "\"«One text»\"");
}

TEST(JsonFiles, MetadataStays) {
  EXPECT_EQ(StringDocument("json", R"({"@@locale": "en", "hi": "Hello", "@hi": {"description": "A word", "x": ["A b"],
"y": {"z": "A c"}}, "bye": "Bye", "o": [{"@a": "Some type", "b": "Some text"}, "More"]})")
                .parts(),
            (Texts{"Hello", "Bye", "Some text", "More"}));
}

TEST(JsonFiles, WhiteSpaceStays) {
  const StringDocument document("json", R"(["\n Two\nlines \u00e9\/\ud83d\ude00é\t"])");
  EXPECT_EQ(document.parts(), Texts{"Two\nlines é/😀é"});
  EXPECT_EQ(document.with({"Zwei\nZeilen\x01"}), R"(["\n Zwei\nZeilen\u0001\t"])");
  EXPECT_EQ(document.with(document.parts()), document.document.texts()[0].bytes);
}

TEST(JsonFiles, DocumentsThatSpellOtherCharactersInAsciiKeepToIt) {
  EXPECT_EQ(StringDocument("json", R"(["caf\u00e9", "b"])").with({"é😀\"\u2028", "ü"}),
            R"(["\u00e9\ud83d\ude00\"\u2028", "\u00fc"])");
  EXPECT_EQ(StringDocument("json", R"(["a \u003c b", "C:\\ue000 x"])").with({"é", "ü"}), R"(["é", "ü"])");
  EXPECT_EQ(StringDocument("json", R"(["caf\u00e9 é"])").with({"ü"}), R"(["ü"])");
}

TEST(JsonFiles, OtherTextIsRefused) {
  EXPECT_EQ(error_of("json", "{\"a\": \"b\""),
            "not valid JSON at byte 10: syntax error while parsing object - unexpected end of input; expected '}'");
  EXPECT_EQ(error_of("json", "[\"a\", x]"),
            "not valid JSON at byte 7: syntax error while parsing value - invalid literal");
  EXPECT_EQ(error_of("json", std::string("[\"a\"]\0\"", 7)), "not valid JSON at byte 6: a NUL byte");
  EXPECT_EQ(error_of("json", "[1e999]"), "not valid JSON at byte 6: a number beyond the range of double");
  EXPECT_EQ(error_of("json", "[\"a\xFF\"]"), "the text must be UTF-8 (byte 4 is not)");
  EXPECT_NE(error_of("json", ""), "");
}

// Programs that cut texts after some units of UTF-16 write such files.
TEST(JsonFiles, StringsWithHalfOfACharacterStay) {
  const std::string kept = R"({"\ud83d a": "Cut here \ud83d", "b": ["\ude00 \ud83d\ude00", "\ud83d\\ude00 x",
"\ud83d\ud83d\uDE00"], "c": )";
  const StringDocument document("json", kept + R"("Some text \uD83D\uDE00", "d": "Not \\ud83d", "e": "Some\ufffd"})");
  EXPECT_EQ(document.parts(), (Texts{"Some text 😀", "Not \\ud83d", "Some\uFFFD"}));
  EXPECT_EQ(document.with({"u", "v", "w"}), kept + R"("u", "d": "v", "e": "w"})");
  EXPECT_EQ(document.with(document.parts()), document.document.texts()[0].bytes);
  EXPECT_NE(error_of("json", "[\"\\ud80\"]"), "");
  EXPECT_NE(error_of("json", "[\"\\u-800\"]"), "");
}

TEST(JsonFiles, DeepNestingIsRead) {
  const std::string opens(100'000, '['), closes(100'000, ']');
  EXPECT_EQ(StringDocument("json", opens + "\"Some text\"" + closes).marked(), opens + "\"«Some text»\"" + closes);
}

// Random translations are what a reader finds.
TEST(JsonFiles, AnyTranslationIsReadBack) {
  const Texts pieces = {"\"", "\\", "/", "\n", "\t", "\x7F", "\x1F", "é", "猫", "😀", "u00e9", " ", "\u2028", "a", "'"};
  std::minstd_rand random(3);
  for (const char* text : {"[\" Some text\\n\"]", "[\" Some t\\u00e9xt\\n\"]"}) {
    for (int round = 0; round < 300; round++) {
      std::string translation;
      for (size_t i = random() % 8; i > 0; i--) translation += pieces[random() % pieces.size()];
      const std::string written = StringDocument("json", text).with({translation});
      EXPECT_EQ(nlohmann::json::parse(written)[0].get<std::string>(), " " + translation + "\n") << written;
    }
  }
}

}  // namespace
}  // namespace qkv
