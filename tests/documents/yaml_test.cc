#include <gtest/gtest.h>
#include <yaml.h>

#include <algorithm>
#include <random>

#include "tests/documents/string_parts.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::StringDocument;
using Texts = std::vector<std::string>;

std::string marked(const std::string& text) { return StringDocument("yaml", text).marked(); }

TEST(YamlFiles, StringsThatAreValuesAreTranslated) {
  EXPECT_EQ(
      marked(
          "\uFEFF# A comment\nen:\n  Some key: \"Hello\"\n  list:\n  - 'One'\n  - - \"Two\"\n  ? [Deep key, \"x y\"]\n"
          "  : \"Three\"\n  ? k: Key text\n  : \"Four\"\n...\n---\n- \"É five\" # note\n"),
      "\uFEFF# A comment\nen:\n  Some key: \"«Hello»\"\n  list:\n  - '«One»'\n  - - \"«Two»\"\n  ? [Deep key, \"x "
      "y\"]\n"
      "  : \"«Three»\"\n  ? k: Key text\n  : \"«Four»\"\n...\n---\n- \"«É five»\" # note\n");
  EXPECT_EQ(StringDocument("yaml", "a: {b: Some text, 'c': [\"More text\", d e]}\n").parts(),
            (Texts{"Some text", "More text", "d e"}));
}

TEST(YamlFiles, OtherValuesStay) {
  EXPECT_EQ(StringDocument("yaml",
                           "a: yes\nb: No\nc: null\nd: 12\ne: 1e+5\nf: +.INF\ng: 2001-12-14 21:59:43 Z\nh: ~\n"
                           "i: 2001-12-14T21:59:43+02:00\nj: id_1\nk: !secret some password\nl: !!binary aGVsbG8\n"
                           "m: *x\nn: !!int 'some text'\no:\np: ''\nq: https://a.b/\n")
                .parts(),
            Texts{});
  EXPECT_EQ(StringDocument("yaml", "Only a text\n").parts(), Texts{});
  EXPECT_EQ(StringDocument("yaml", "a: \"yes\"\nb: 'No'\nc: !!str on\nd: ! off\n").parts(),
            (Texts{"yes", "No", "on", "off"}));
}

TEST(YamlFiles, AnchorsTagsAndAliasesStay) {
  EXPECT_EQ(marked("a: &x 'One'\nb: *x\nc: &y !!str # note\n  'Two'\nd: !<tag:yaml.org,2002:str> &z 'Three'\n"),
            "a: &x '«One»'\nb: *x\nc: &y !!str # note\n  '«Two»'\nd: !<tag:yaml.org,2002:str> &z '«Three»'\n");
  EXPECT_EQ(marked("a: &x:One two\nb: Three\n"), "a: &x \"«:One two»\"\nb: \"«Three»\"\n");
}

TEST(YamlFiles, PlainScalarsGetQuotesWhereTheyNeedThem) {
  const StringDocument block("yaml", "a: Some text # note\n");
  for (const char* safe : {"Ein Text", "É: x"}) {
    const bool is_plain = std::string_view(safe).find(": ") == std::string_view::npos;
    EXPECT_EQ(block.with({safe}),
              std::string("a: ") + (is_plain ? safe : "\"" + std::string(safe) + "\"") + " # note\n");
  }
  for (const char* plain : {"Hallo, Welt!", "a:b", "x#y", "it's \"it\"", "[x]x"})
    EXPECT_EQ(block.with({plain}).find('"') == 3, plain[0] == '[') << plain;
  for (const char* quoted : {"no", "Yes", "NULL", "12", "- a", "a #b", "a:",  "*a", "&a", "!a", "%a",   "@a", "`a",
                             " a", "a ",  "",     "#a", "> a", "...",  "---", "?",  "=",  "<<", ".inf", "1e5"})
    EXPECT_EQ(block.with({quoted}), "a: \"" + std::string(quoted) + "\" # note\n");
  EXPECT_EQ(block.with({"a\tb\u2028c\u0085\x01"}), "a: \"a\\tb\\u2028c\\x85\\x01\" # note\n");
  EXPECT_EQ(StringDocument("yaml", "[Some text, {a: More text}]").with({"a b", "c d"}), "[a b, {a: c d}]");
  EXPECT_EQ(StringDocument("yaml", "[Some text, {a: More text}]").with({"a, b", "c]"}), "[\"a, b\", {a: \"c]\"}]");
}

TEST(YamlFiles, TabsBehindAPlainScalarBecomeSpaces) {
  const StringDocument document("yaml", "a: Some text\n  \t# note\nb:\t1\nc: More text \t\n");
  EXPECT_EQ(document.with({"- x", "w"}), "a: \"- x\"\n   # note\nb:\t1\nc: w \t\n");
  EXPECT_EQ(document.with({"Some text", "More text"}), document.document.texts()[0].bytes);
}

// Line ends of YAML, which are five characters.
TEST(YamlFiles, SeparatorsOfLinesAndParagraphsEndLines) {
  for (const std::string line_end : {"\u0085", "\u2028", "\u2029", "\r"}) {
    const StringDocument tabs("yaml", "a: Some text" + line_end + " \t\n");
    EXPECT_EQ(tabs.with({"- x"}), "a: \"- x\"" + line_end + "  \n");
    EXPECT_EQ(tabs.with({"Some text"}), tabs.document.texts()[0].bytes);
    EXPECT_EQ(marked("a: !!str # note" + line_end + "  'One'\nb: &x" + line_end + "  'Two'\n"),
              "a: !!str # note" + line_end + "  '«One»'\nb: &x" + line_end + "  '«Two»'\n");
    EXPECT_EQ(marked("a: !!str" + line_end + "  'One'\n"), "a: !!str" + line_end + "  '«One»'\n");
    EXPECT_EQ(marked("- !" + line_end + "\uFEFFOne"), "- !" + line_end + "\uFEFF\"«One»\"");
    std::string directives;
    for (int i = 0; i < 65; i++) directives += "%TAG !" + std::to_string(i) + "! x" + line_end;
    EXPECT_EQ(error_of("yaml", directives + "---\n"), "YAML with 65 tag directives (at most 64)");
  }
}

TEST(YamlFiles, QuotesStay) {
  const StringDocument single("yaml", "a: 'It''s  one'\nb: ' Two '\n");
  EXPECT_EQ(single.parts(), (Texts{"It's  one", "Two"}));
  EXPECT_EQ(single.with({"it's \\", "'b'\""}), "a: 'it''s \\'\nb: \" 'b'\\\" \"\n");
  EXPECT_EQ(single.with({"a\x7F", "b"}), "a: \"a\\x7f\"\nb: \" b \"\n");
  const StringDocument twice("yaml", "a: \"\\tOne \\u00e9\\\n  \\ more\\n\\nTwo\"\n");
  EXPECT_EQ(twice.parts(), Texts{"One é more\n\nTwo"});
  EXPECT_EQ(twice.with({"Eins\n\nZ\"w\\ei"}), "a: \"\\tEins\\n\\nZ\\\"w\\\\ei\"\n");
}

TEST(YamlFiles, ScalarsOfSeveralLinesAreOnePart) {
  const StringDocument document("yaml", "a: One\n  two\n\n  three\nb: 'Four\n  five'\r\nc: d e\n");
  EXPECT_EQ(document.parts(), (Texts{"One two\nthree", "Four five", "d e"}));
  EXPECT_EQ(document.with({"Eins\nzwei", "Vier", "f"}), "a: \"Eins\\nzwei\"\nb: 'Vier'\r\nc: f\n");
  EXPECT_EQ(document.with(document.parts()), document.document.texts()[0].bytes);
}

TEST(YamlFiles, LinesOfLiteralBlocksAreParts) {
  EXPECT_EQ(marked("a: | # note\n  One é\n\n    two  \n  three\n\n# comment\nb: |2-\n    Four\r\n   five\r\n"),
            "a: | # note\n  «One é»\n\n    «two»  \n  «three»\n\n# comment\nb: |2-\n    «Four»\r\n   «five»\r\n");
  EXPECT_EQ(marked("- &x !!str |+\n One\n ---\n - two"), "- &x !!str |+\n «One»\n ---\n «- two»");
  EXPECT_EQ(StringDocument("yaml", "a: |\n  One\n   two\n").with({"  # a\u2028b\x01", ""}),
            "a: |\n  # a b\uFFFD\n   \u00A0\n");
}

TEST(YamlFiles, ParagraphsOfFoldedBlocksAreParts) {
  const StringDocument document(
      "yaml", "a: >-\n  One two\n  three  \n\n  Four\n    five six\n    seven\nb: >\r\n  Eight\r\n  nine\r\n");
  EXPECT_EQ(document.parts(), (Texts{"One two three", "Four", "five six", "seven", "Eight nine"}));
  EXPECT_EQ(document.with({"Eins zwei drei", "Vier", "fünf  sechs", "sieben", "Acht  neun "}),
            "a: >-\n  Eins zwei\n  drei\n\n  Vier\n    fünf sechs\n    sieben\nb: >\r\n  Acht\r\n  neun\r\n");
  EXPECT_EQ(document.with({" ", "Vier", "x", "y", "z"}), "a: >-\n  \u00A0\n\n  Vier\n    x\n    y\nb: >\r\n  z\r\n");
  EXPECT_EQ(document.with(document.parts()), document.document.texts()[0].bytes);
}

TEST(YamlFiles, OtherTextIsRefused) {
  EXPECT_EQ(error_of("yaml", "a: b\nc: [d\n"), "line 3: not valid YAML: did not find expected ',' or ']'");
  EXPECT_EQ(error_of("yaml", "a: \x01"), "line 1: not valid YAML: control characters are not allowed");
  EXPECT_EQ(error_of("yaml", std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(error_of("yaml", "\n" + std::string(65, '[')), "line 2: YAML nested more than 64 levels deep");
  std::string directives;
  for (int i = 0; i < 65; i++) directives += "%TAG !" + std::to_string(i) + "! x\n";
  EXPECT_EQ(error_of("yaml", directives + "---\n"), "YAML with 65 tag directives (at most 64)");
}

// The values of a document, as libyaml reads them.
Texts values_of(const std::string& text) {
  yaml_parser_t parser;
  yaml_parser_initialize(&parser);
  yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  Texts values;
  for (bool is_done = false; !is_done;) {
    yaml_event_t event;
    if (!yaml_parser_parse(&parser, &event)) {
      values.push_back(std::string("error: ") + parser.problem);
      break;
    }
    if (event.type == YAML_SCALAR_EVENT)
      values.emplace_back(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
    is_done = event.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
  }
  yaml_parser_delete(&parser);
  return values;
}

// Random translations are what a reader finds, in scalars of all styles that have escapes.
TEST(YamlFiles, AnyTranslationIsReadBack) {
  const Texts pieces = {"\"",     "\\",     "'",      ": ",     " #", ",",  "]", "}",  "- ", "é",
                        "猫",     "😀",      " ",      "a",      "b",  "!",  "&", "\t", "\r", "%",
                        "\u2028", "\u0085", "\uFEFF", "\uFFFE", "?",  "no", "1", "|",  ">"};
  std::minstd_rand random(5);
  const StringDocument document(
      "yaml", "a: Plain text\nb: 'Single one'\nc: \" Double one\\n\"\nd: [In brackets, {e: In braces}]\n");
  for (int round = 0; round < 500; round++) {
    Texts translations(5);
    for (std::string& translation : translations)
      for (size_t i = random() % 6; i > 0; i--) translation += pieces[random() % pieces.size()];
    const std::string written = document.with(translations);
    EXPECT_EQ(values_of(written), (Texts{"a", translations[0], "b", translations[1], "c", " " + translations[2] + "\n",
                                         "d", translations[3], "e", translations[4]}))
        << written;
  }
}

// Blocks cannot hold any text, but what is written is read as lines of the same number.
TEST(YamlFiles, AnyTranslationOfABlockIsABlock) {
  const Texts pieces = {" ",      "  ", "\t",   "#",   "- ",     "a",   "é", ": ",
                        "\u2028", "\r", "\x01", "---", "\uFEFF", "...", "'"};
  std::minstd_rand random(9);
  const StringDocument document("yaml", "a: |\n  One\n    two\n  three\nb: >-\n  Four five\n  six\n\n  Seven\nc: 1\n");
  for (int round = 0; round < 500; round++) {
    Texts translations(5);
    for (std::string& translation : translations)
      for (size_t i = random() % 6; i > 0; i--) translation += pieces[random() % pieces.size()];
    const Texts values = values_of(document.with(translations));
    ASSERT_EQ(values.size(), 6u) << document.with(translations);
    EXPECT_EQ(std::ranges::count(values[1], '\n'), 3);
    EXPECT_EQ(std::ranges::count(values[3], '\n'), 1);
    EXPECT_EQ(values[5], "1");
  }
}

}  // namespace
}  // namespace qkv
