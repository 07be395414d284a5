#include "documents/split_text.h"

#include <gtest/gtest.h>

#include <set>

#include "documents/document.h"
#include "documents/restore_markup.h"
#include "documents/subtitles.h"
#include "qkv/error.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using testing::translation;

// The text with every part in brackets.
std::string bracketed(const std::string& format, const std::string& text) {
  const Document document(*find_document_format(format), text);
  std::vector<std::string> marked;
  for (const std::string& part : document.part_texts()) marked.push_back("[" + part + "]");
  return document.replaced(marked);
}

TEST(TextFiles, TheFormatFollowsFromTheEndOfTheName) {
  EXPECT_EQ(format_of_file("a.b.TXT")->name, "text");
  EXPECT_EQ(format_of_file("ä.Html")->name, "html");
  EXPECT_EQ(format_of_file("x.srt")->name, "srt");
  for (const char* name : {"", "txt", ".txt", "a.txt.gz", "a.exe", "a.html ", "atxt"})
    EXPECT_EQ(format_of_file(name), nullptr) << name;
}

TEST(TextFiles, FormatsHaveDifferentNamesAndExtensions) {
  std::set<std::string_view> seen;
  for (const DocumentFormat* format : all_document_formats()) {
    EXPECT_TRUE(seen.insert(format->name).second) << format->name;
    EXPECT_NE(format->split == nullptr, format->split_member == nullptr) << format->name;
    for (const std::string_view extension : format->extensions)
      EXPECT_TRUE(extension.starts_with(".") && seen.insert(extension).second) << extension;
  }
}

TEST(TextFiles, OtherEncodingsAreRefused) {
  for (const char* format : {"text", "html", "srt", "vtt"}) {
    try {
      bracketed(format, "a\nb\xFF");
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "the text must be UTF-8 (byte 4 is not)");
    }
  }
}

TEST(TextFiles, Utf16StaysUtf16) {
  const std::string little(
      "\xFF\xFE"
      "a\0\n\0\xE9\0\x3D\xD8\x00\xDE",
      12),
      big("\xFE\xFF\0a\0\n", 6);
  EXPECT_EQ(bracketed("text", little), std::string("\xFF\xFE[\0a\0]\0\n\0[\0\xE9\0\x3D\xD8\x00\xDE]\0", 20));
  EXPECT_EQ(bracketed("text", big), std::string("\xFE\xFF\0[\0a\0]\0\n", 10));
  for (const std::string& bad : {little.substr(0, 11), little.substr(0, 10)})
    EXPECT_THROW(bracketed("text", bad), Error);
}

TEST(TextFiles, ADocumentNeedsAReplacementForEachPart) {
  const Document document(*find_document_format("text"), "a\nb");
  EXPECT_THROW(document.replaced(std::vector<std::string>{"x"}), Error);
  EXPECT_THROW(document.replaced(std::vector<std::string>{"x", "y", "z"}), Error);
  EXPECT_THROW(document.translated(std::vector<Translation>(1)), Error);
}

TEST(TextLines, LinesAreTranslatedApartAndEmptyOnesAndLineEndsStay) {
  EXPECT_EQ(bracketed("text", "one\n\n two \r\n \t\r\u00A0\nthree\r\rfour"),
            "[one]\n\n[ two ]\r\n \t\r\u00A0\n[three]\r\r[four]");
  EXPECT_EQ(bracketed("text", "\uFEFFone\n"), "\uFEFF[one]\n");
  EXPECT_EQ(bracketed("text", ""), "");
  EXPECT_EQ(bracketed("text", "a <b> & c"), "[a <b> & c]");
  const Document document(*find_document_format("text"), "a <b>\n");
  EXPECT_EQ(document.translated(std::vector<Translation>{translation({"▁a", "▁<b>"}, {"▁x", "▁<b>", "&"}, {})}),
            "x <b>&\n");
}

TEST(Subtitles, NumbersTimesTagsAndLineEndsStay) {
  EXPECT_EQ(bracketed("srt",
                      "\uFEFF1\r\n00:00:01,000 --> 00:00:02,500\r\nTwo dogs\r\nrun.\r\n\r\n2\r\n00:00:03,000 --> "
                      "00:00:04,000 X1:40\r\n{\\an8}<i>One more</i>\r\n"),
            "\uFEFF1\r\n00:00:01,000 --> 00:00:02,500\r\n[Two dogs run.]\r\n\r\n2\r\n00:00:03,000 --> "
            "00:00:04,000 X1:40\r\n{\\an8}<i>[One more]</i>\r\n");
  EXPECT_EQ(bracketed("srt", "notes\n\n1\n0:00:01 --> 0:00:02\n\ntext after a gap\n"),
            "notes\n\n1\n0:00:01 --> 0:00:02\n\ntext after a gap\n");
  EXPECT_EQ(bracketed("srt", "0:00:01 --> 0:00:02\nIn 2024\n2025 &amp; 1 < 2\n9\n0:00:03 --> 0:00:04\n♪♪\n"),
            "0:00:01 --> 0:00:02\n[In 2024 2025 &amp; 1 < 2]\n9\n0:00:03 --> 0:00:04\n♪♪\n");
}

TEST(Subtitles, LinesOfSeveralSpeakersAreTranslatedApart) {
  EXPECT_EQ(bracketed("srt", "1\n0:00:01 --> 0:00:02\n- Who\nis it?\n<i>–It is me.</i>\n"),
            "1\n0:00:01 --> 0:00:02\n- [Who is it?]\n<i>–[It is me.]</i>\n");
  EXPECT_EQ(bracketed("srt", "0:00:01 --> 0:00:02\nIt is\n-5 degrees - cold\n"),
            "0:00:01 --> 0:00:02\n[It is -5 degrees - cold]\n");
}

TEST(Subtitles, TranslationsHaveTheLinesOfTheSource) {
  const SplitText document = split_subtitles(
      "0:00:01 --> 0:00:02\r\nTwo <i>dogs</i>\r\nrun home.\r\n\r\n0:00:03 --> 0:00:04\r\n<i>Yes,</i>\r\n<i>no</i>\r\n",
      kPlainSpelling);
  ASSERT_EQ(document.parts.size(), 2u);
  EXPECT_EQ(restore_markup(document, document.parts[0],
                           translation({"▁Two", "▁dogs", "▁run", "▁home", "."},
                                       {"▁Zwei", "▁Hunde", "▁laufen", "▁nach", "▁Hause", "."}, {0, 1, 2, 3, 3, 4})),
            "Zwei <i>Hunde</i> laufen\r\nnach Hause.");
  EXPECT_EQ(
      restore_markup(document, document.parts[1], translation({"▁Yes", ",", "▁no"}, {"▁Ja", ",", "▁nein"}, {0, 1, 2})),
      "<i>Ja,</i>\r\n<i>nein</i>");
  EXPECT_EQ(restore_markup(document, document.parts[1], translation({"▁Yes", ",", "▁no"}, {"▁Yes", ",", "▁no"}, {})),
            "<i>Yes,</i>\r\n<i>no</i>");
}

TEST(Subtitles, LinesAreAboutOfTheSameLength) {
  EXPECT_EQ(break_lines("one two three four", 2), "one two\nthree four");
  EXPECT_EQ(break_lines("a bcdefghijklmno", 2), "a\nbcdefghijklmno");
  EXPECT_EQ(break_lines("abcdefghijklmn o", 2), "abcdefghijklmn\no");
  EXPECT_EQ(break_lines("one two three four five six", 3), "one two\nthree four\nfive six");
  EXPECT_EQ(break_lines("abc", 3), "abc");
  EXPECT_EQ(break_lines("a b", 3), "a\nb");
  EXPECT_EQ(break_lines("a b c", 1), "a b c");
  EXPECT_EQ(break_lines("", 2), "");
}

}  // namespace
}  // namespace qkv
