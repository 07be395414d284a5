#include <gtest/gtest.h>

#include "tests/documents/string_parts.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::StringDocument;
using Texts = std::vector<std::string>;

TEST(PropertiesFiles, ValuesAreTranslated) {
  EXPECT_EQ(StringDocument("properties",
                           "\uFEFF# Some comment \\\n! More text\n\n  a.b = Hello é\r\nc:One text\rd  Two words\n"
                           "e\\ f\\=g=  Three\\\n\nh\ni=\nj = 12\nk=id_1\n\\u0041\\:\\\\ : Four\n")
                .marked(),
            "\uFEFF# Some comment \\\n! More text\n\n  a.b = «Hello é»\r\nc:«One text»\rd  «Two words»\n"
            "e\\ f\\=g=  «Three»\nh\ni=\nj = 12\nk=id_1\n\\u0041\\:\\\\ : «Four»\n");
}

TEST(PropertiesFiles, EscapesAndContinuationsAreDecoded) {
  const StringDocument document(
      "properties", "a = \\\n   Line one, \\\r\n \t line\\ttwo \\n\\\n  \\u00e9\\ud83d\\uDE00\\'\\q {0} it''s  \n");
  EXPECT_EQ(document.parts(), Texts{"Line one, line\ttwo \né😀'q {0} it''s"});
  EXPECT_EQ(document.with({"ä\\\n😀\t: = # !"}), "a = \\\n   \\u00e4\\\\\\n\\ud83d\\ude00\\t: = # !\\  \n");
  EXPECT_EQ(document.with(document.parts()), document.document.texts()[0].bytes);
  EXPECT_EQ(StringDocument("properties", "a \\ \\tSome text\\ \n").with({"b"}), "a \\ \\tb\\ \n");
}

TEST(PropertiesFiles, OtherCharactersAreEscapedInFilesOfAscii) {
  EXPECT_EQ(StringDocument("properties", "a=Some text").with({"é\x7F"}), "a=\\u00e9\\u007f");
  EXPECT_EQ(StringDocument("properties", "# é\na=Some text").with({"é😀\x01"}), "# é\na=é😀\\u0001");
}

TEST(PropertiesFiles, TheBeginningOfAValueIsEscaped) {
  const StringDocument document("properties", "a Some text\n");
  EXPECT_EQ(document.with({" b"}), "a \\ b\n");
  EXPECT_EQ(document.with({"=b"}), "a \\=b\n");
  EXPECT_EQ(document.with({":b"}), "a \\:b\n");
  EXPECT_EQ(document.with({"#b"}), "a #b\n");
}

TEST(PropertiesFiles, BadEscapesAreRefused) {
  EXPECT_EQ(error_of("properties", "a=b\nc=x \\u12g4 y"), "line 2: \\u12g4 must be \\u and four hexadecimal digits");
  EXPECT_EQ(error_of("properties", "c=\\u12"), "line 1: \\u12 must be \\u and four hexadecimal digits");
  EXPECT_EQ(error_of("properties", "a=\\ud800 b"), "line 1: \\ud800 is half of a character");
  EXPECT_EQ(error_of("properties", "a=\\udc00\\ud800"), "line 1: \\udc00 is half of a character");
  EXPECT_EQ(error_of("properties", "a=caf\xE9"), "the text must be UTF-8 (byte 6 is not)");
  for (const char* odd : {"", "\\", "a\\", "a=\\", "a=b\\", "\\\n", "a\\\n=b c\\\r", "=", "= x y"})
    EXPECT_EQ(error_of("properties", odd), "") << odd;
}

}  // namespace
}  // namespace qkv
