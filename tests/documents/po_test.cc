#include <gtest/gtest.h>

#include <random>

#include "documents/bilingual/po_entries.h"
#include "documents/document.h"
#include "qkv/error.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using testing::translation;
using testing::unchanged;

using PoTexts = std::vector<std::string>;

Document catalog(const std::string& text) { return Document(*find_document_format("po"), text); }

std::string catalog_error(const std::string& text) {
  try {
    catalog(text);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// The catalog with each part translated by the text of the same place.
std::string with_translations(const std::string& text, const PoTexts& translations) {
  std::vector<Translation> all;
  for (const std::string& translated : translations) {
    all.push_back(unchanged("source"));
    all.back().hypotheses[0].text = translated;
  }
  return catalog(text).translated(all);
}

std::string with_copies(const std::string& text) {
  std::vector<Translation> all;
  for (const std::string& part : catalog(text).part_texts()) all.push_back(unchanged(part));
  return catalog(text).translated(all);
}

TEST(Po, EmptyStringsAreTranslated) {
  const std::string header = "# c\nmsgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n\n";
  const std::string text = header +
                           "#: a.c:1\n#, c-format\nmsgctxt \"menu\"\nmsgid \"A \\\"%s\\\" dog\\t\\\\\"\nmsgstr \"\"\n\n"
                           "msgid \"done\"\nmsgstr \"fertig\"\n\n#~ msgid \"old\"\n#~ msgstr \"\"\n";
  EXPECT_EQ(catalog(text).part_texts(), PoTexts{"A \"%s\" dog\t\\"});
  std::string expected = text;
  const std::string empty = "\\\\\"\nmsgstr \"\"\n";
  expected.replace(expected.find(empty), empty.size(), "\\\\\"\nmsgstr \"Ein \\\"%s\\\" Hund\\001\\\\ä\"\n");
  EXPECT_EQ(with_translations(text, {"Ein \"%s\" Hund\x01\\ä"}), expected);
  EXPECT_EQ(with_copies("msgid \"a\" \n \"b\\x41\\102\"\nmsgstr\n\"\""),
            "msgid \"a\" \n \"b\\x41\\102\"\nmsgstr\n\"a\" \n \"b\\x41\\102\"");
}

TEST(Po, FuzzyEntriesHeadersAndTextWithoutLettersStay) {
  for (const char* text :
       {"#, c-format, fuzzy\nmsgid \"a\"\nmsgstr \"\"\n", "#, fuzzy\nmsgctxt \"c\"\nmsgid \"a\"\nmsgstr \"\"\n",
        "msgid \"\"\nmsgstr \"\"\n", "msgid \"%\"\nmsgstr \"\"\n", "", "\uFEFF# only a comment"}) {
    EXPECT_EQ(catalog(text).parts(), 0u) << text;
    EXPECT_EQ(with_copies(text), text);
  }
  EXPECT_EQ(catalog("#, fuzzy\nmsgid \"a\"\nmsgstr \"\"\n#, not-fuzzy\nmsgid \"b\"\nmsgstr \"\"\n").part_texts(),
            PoTexts{"b"});
}

TEST(Po, PluralFormsAreTranslatedFromMsgidAndMsgidPlural) {
  const auto forms = [](const std::string& id, std::initializer_list<const char*> strings) {
    std::string text = "msgid \"" + id + "\"\nmsgid_plural \"%d dogs\"\n";
    size_t form = 0;
    for (const char* string : strings) text += "msgstr[" + std::to_string(form++) + "] \"" + string + "\"\n";
    return text;
  };
  EXPECT_EQ(with_copies(forms("%d dog", {"", "", ""})), forms("%d dog", {"%d dog", "%d dogs", "%d dogs"}));
  EXPECT_EQ(with_copies(forms("one dog", {"", ""})), forms("one dog", {"one dog", "%d dogs"}));
  EXPECT_EQ(with_copies(forms("one dog", {"", "x", ""})), forms("one dog", {"%d dogs", "x", "%d dogs"}));
  const std::string icelandic = "msgid \"\"\nmsgstr \"Plural-Forms: nplurals=2; plural=n%10==1;\\n\"\n";
  EXPECT_EQ(with_copies(icelandic + forms("one dog", {"", ""})), icelandic + forms("one dog", {"%d dogs", "%d dogs"}));
  EXPECT_EQ(with_copies(forms("%d dog", {""})), forms("%d dog", {"%d dogs"}));
}

TEST(Po, EntriesWithOtherFormsThanTheHeaderSaysStay) {
  const std::string entry = "msgid \"dog\"\nmsgid_plural \"dogs\"\nmsgstr[0] \"\"\nmsgstr[1] \"\"\n";
  const auto header = [](const std::string& forms) {
    return "msgid \"\"\nmsgstr \"Plural-Forms: nplurals=" + forms + "; plural=0;\\n\"\n\n";
  };
  EXPECT_EQ(catalog(header("1") + entry + "msgid \"cat\"\nmsgstr \"\"\n").part_texts(), PoTexts{"cat"});
  EXPECT_EQ(catalog(header("3") + entry).part_texts(), PoTexts{});
  EXPECT_EQ(catalog(header("2") + entry).part_texts(), PoTexts({"dog", "dogs"}));
  EXPECT_EQ(catalog(header("INTEGER") + entry).part_texts(), PoTexts({"dog", "dogs"}));
}

TEST(Po, LineFeedsAtBothEndsStay) {
  EXPECT_EQ(with_translations("msgid \"Dog\\n\"\nmsgstr \"\"\n", {"Hund"}), "msgid \"Dog\\n\"\nmsgstr \"Hund\\n\"\n");
  EXPECT_EQ(with_translations("msgid \"\\n  Dog \\n\\n\"\nmsgstr \"\"\n", {"Hund"}),
            "msgid \"\\n  Dog \\n\\n\"\nmsgstr \"\"\n\"\\n\"\n\"  Hund \\n\"\n\"\\n\"\n");
}

TEST(Po, LongTextsAndLinesAreBroken) {
  const std::string id = "msgid \"\"\r\n\"one\\n\"\r\n\"two\"\r\n";
  EXPECT_EQ(catalog(id + "msgstr \"\"\r\n").part_texts(), PoTexts{"one\ntwo"});
  EXPECT_EQ(with_translations(id + "msgstr \"\"\r\n", {"eins\nzwei"}),
            id + "msgstr \"\"\r\n\"eins\\n\"\r\n\"zwei\"\r\n");
  const std::string word = "abcdefghi ";  // 7 words and the quotes are 72 columns
  std::string seven, nine;
  for (int i = 0; i < 7; i++) seven += word;
  EXPECT_EQ(with_translations("msgid \"a\"\nmsgstr \"\"\n", {seven + "jklmnop end"}),
            "msgid \"a\"\nmsgstr \"\"\n\"" + seven + "\"\n\"jklmnop end\"\n");
  EXPECT_EQ(with_translations("msgid \"a\"\nmsgstr \"\"\n", {""}), "msgid \"a\"\nmsgstr \"\"\n");
}

TEST(Po, OtherFilesAreRefused) {
  EXPECT_EQ(catalog_error("msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=iso-8859-15\\n\"\n"),
            "the header's charset is ISO-8859-15 (must be UTF-8; msgconv -t UTF-8 converts the file)");
  EXPECT_EQ(catalog_error("msgid \"\"\nmsgstr \"charset=CHARSET\\n\"\n"), "");
  EXPECT_EQ(
      catalog_error("\n\nHello world, this is text of some length\n"),
      "line 3: found \"Hello world, this is text of som\" (must be a comment, a string in quotes, or msgctxt, msgid, "
      "msgid_plural, msgstr or domain)");
  EXPECT_EQ(catalog_error("\"a\""), "line 1: a string follows no keyword such as msgid");
  EXPECT_EQ(catalog_error("msgid x"), "line 1: msgid must be followed by a string in quotes");
  EXPECT_EQ(catalog_error("msgid \"a\nb\""), "line 1: the string does not end with a quote");
  EXPECT_EQ(catalog_error("msgid \"a\\"), "line 1: the string does not end with a quote");
  EXPECT_EQ(catalog_error("msgid \"a\\\""), "line 1: the string does not end with a quote");
  EXPECT_EQ(catalog_error("msgstr \"a\""), "line 1: msgstr must follow a msgid");
  EXPECT_EQ(catalog_error("msgid \"a\"\n\nmsgid \"b\"\nmsgstr \"\""), "line 1: the msgid has no msgstr");
  EXPECT_EQ(catalog_error("msgid \"a\"\nmsgstr \"\"\nmsgstr \"\""),
            "line 3: an entry must have one msgstr, or msgstr[N] after msgid_plural");
  EXPECT_EQ(catalog_error("msgid \"a\"\nmsgid_plural \"b\"\nmsgstr \"\""),
            "line 3: an entry must have one msgstr, or msgstr[N] after msgid_plural");
  EXPECT_EQ(catalog_error("msgid \"a\"\nmsgstr[0] \"\""), "line 2: msgstr[N] must follow a msgid_plural");
  EXPECT_EQ(catalog_error("msgid \"a\"\nmsgid_plural \"b\"\nmsgstr[1] \"\""),
            "line 3: msgstr[N] must be numbered 0, 1, … up to 15");
  EXPECT_EQ(catalog_error("msgid_plural \"b\""), "line 1: msgid_plural must follow a msgid");
  EXPECT_EQ(catalog_error("\nmsgid \"a\\qé\"\nmsgstr \"\""),
            "line 2: unknown escape \\qé (must be \\n, \\t, \\\", \\\\ or another one of C for an ASCII character)");
  EXPECT_NE(catalog_error("msgid \"a\\xff\"\nmsgstr \"\""), "");
  EXPECT_EQ(catalog_error("#~ anything\n#, fuzzy\nmsgctxt \"a\""), "");
}

// Any bytes are a catalog or an error, and parts are in order.
TEST(Po, BytesOfAnyKindAreReadOrRefused) {
  const PoTexts pieces = {"msgid \"a\"\n",
                          "msgid_plural \"b\\n\"\n",
                          "msgstr \"\"\n",
                          "msgstr[0] \"\"",
                          "msgstr[1] \"c\"",
                          "msgstr[1]\"\"",
                          "\"\"",
                          "\n",
                          "\\",
                          "\"",
                          "#, fuzzy\n",
                          "é"};
  std::minstd_rand random(1);
  size_t read = 0;
  for (int round = 0; round < 20000; round++) {
    std::string text = round % 2 ? pieces[0] : "";
    for (int i = 0; i < 5; i++) text += pieces[random() % pieces.size()];
    try {
      std::vector<Translation> all;
      for (const std::string& part : catalog(text).part_texts()) all.push_back(unchanged(part + "\"\\"));
      const std::string translated = catalog(text).translated(all);
      EXPECT_EQ(catalog(translated).parts(), 0u) << text;
      read += !all.empty();
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read, 10u);
}

}  // namespace
}  // namespace qkv
