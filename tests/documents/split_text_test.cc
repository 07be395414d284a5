#include "documents/split_text.h"

#include <gtest/gtest.h>

#include "documents/restore_markup.h"
#include "documents/subtitles.h"
#include "qkv/error.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using testing::translation;

// The text with every part in brackets.
std::string bracketed(TextFormat format, const std::string& text) {
  const SplitText document = split_text(format, text);
  std::vector<std::string> marked;
  for (const TextPart& part : document.parts) marked.push_back("[" + part.text + "]");
  return join(document, marked);
}

TEST(TextFiles, TheFormatFollowsFromTheEndOfTheName) {
  EXPECT_EQ(format_of_file("a.b.TXT"), TextFormat::lines);
  EXPECT_EQ(format_of_file("ä.Html"), TextFormat::html);
  EXPECT_EQ(format_of_file("x.srt"), TextFormat::srt);
  for (const char* name : {"", "txt", ".txt", "a.txt.gz", "a.docx", "a.html ", "atxt"})
    EXPECT_EQ(format_of_file(name), std::nullopt) << name;
}

TEST(TextFiles, OtherEncodingsAreRefused) {
  for (const TextFormat format : {TextFormat::lines, TextFormat::html, TextFormat::srt}) {
    try {
      split_text(format, "a\nb\xFF");
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "the text must be UTF-8 (byte 4 is not)");
    }
  }
}

TEST(TextFiles, JoinNeedsAReplacementForEachPart) {
  EXPECT_THROW(join(split_text(TextFormat::lines, "a\nb"), std::vector<std::string>{"x"}), Error);
}

TEST(TextLines, LinesAreTranslatedApartAndEmptyOnesAndLineEndsStay) {
  EXPECT_EQ(bracketed(TextFormat::lines, "one\n\n two \r\n \t\r\u00A0\nthree\r\rfour"),
            "[one]\n\n[ two ]\r\n \t\r\u00A0\n[three]\r\r[four]");
  EXPECT_EQ(bracketed(TextFormat::lines, "\uFEFFone\n"), "\uFEFF[one]\n");
  EXPECT_EQ(bracketed(TextFormat::lines, ""), "");
  EXPECT_EQ(bracketed(TextFormat::lines, "a <b> & c"), "[a <b> & c]");
  const SplitText document = split_text(TextFormat::lines, "a <b>\n");
  EXPECT_EQ(restore_markup(document, document.parts[0], translation({"▁a", "▁<b>"}, {"▁x", "▁<b>", "&"}, {})),
            "x <b>&");
}

TEST(Subtitles, NumbersTimesTagsAndLineEndsStay) {
  EXPECT_EQ(bracketed(TextFormat::srt,
                      "\uFEFF1\r\n00:00:01,000 --> 00:00:02,500\r\nTwo dogs\r\nrun.\r\n\r\n2\r\n00:00:03,000 --> "
                      "00:00:04,000 X1:40\r\n{\\an8}<i>One more</i>\r\n"),
            "\uFEFF1\r\n00:00:01,000 --> 00:00:02,500\r\n[Two dogs run.]\r\n\r\n2\r\n00:00:03,000 --> "
            "00:00:04,000 X1:40\r\n{\\an8}<i>[One more]</i>\r\n");
  EXPECT_EQ(bracketed(TextFormat::srt, "notes\n\n1\n0:00:01 --> 0:00:02\n\ntext after a gap\n"),
            "notes\n\n1\n0:00:01 --> 0:00:02\n\ntext after a gap\n");
  EXPECT_EQ(bracketed(TextFormat::srt, "0:00:01 --> 0:00:02\nIn 2024\n2025 &amp; 1 < 2\n9\n0:00:03 --> 0:00:04\n♪♪\n"),
            "0:00:01 --> 0:00:02\n[In 2024 2025 &amp; 1 < 2]\n9\n0:00:03 --> 0:00:04\n♪♪\n");
}

TEST(Subtitles, LinesOfSeveralSpeakersAreTranslatedApart) {
  EXPECT_EQ(bracketed(TextFormat::srt, "1\n0:00:01 --> 0:00:02\n- Who\nis it?\n<i>–It is me.</i>\n"),
            "1\n0:00:01 --> 0:00:02\n- [Who is it?]\n<i>–[It is me.]</i>\n");
  EXPECT_EQ(bracketed(TextFormat::srt, "0:00:01 --> 0:00:02\nIt is\n-5 degrees - cold\n"),
            "0:00:01 --> 0:00:02\n[It is -5 degrees - cold]\n");
}

TEST(Subtitles, TranslationsHaveTheLinesOfTheSource) {
  const SplitText document = split_subtitles(
      "0:00:01 --> 0:00:02\r\nTwo <i>dogs</i>\r\nrun home.\r\n\r\n0:00:03 --> 0:00:04\r\n<i>Yes,</i>\r\n<i>no</i>\r\n");
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
