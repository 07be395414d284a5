// The lines of qkv classify and qkv rerank.
#include "program/lines/classify_lines.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

TEST(ClassifyLines, ATabSeparatesTheTextsOfAPair) {
  EXPECT_EQ(parse_text_line("a b", 1).text, "a b");
  EXPECT_EQ(parse_text_line("a b", 1).pair, std::nullopt);
  EXPECT_EQ(parse_text_line("a\tb", 1).text, "a");
  EXPECT_EQ(parse_text_line("a\t", 1).pair, "");
  EXPECT_EQ(error_of([] { parse_text_line("a\tb\tc", 7); }),
            "line 7: has 2 tabs, expected at most 1, between the texts of a pair");
}

TEST(ClassifyLines, RequestsHaveATextAndPerhapsAPair) {
  EXPECT_EQ(parse_classify_line(R"({"text": "\u00e9"})").text, "é");
  EXPECT_EQ(parse_classify_line(R"({"text": "a"})").pair, std::nullopt);
  EXPECT_EQ(parse_classify_line(R"({"pair": "b", "text": "a"})").pair, "b");
  for (const auto& [text, expected] : std::initializer_list<std::pair<const char*, std::string>>{
           {"{}", "must have \"text\""},
           {R"({"pair": "a"})", "must have \"text\""},
           {R"({"text": null})", "\"text\" must be a string"},
           {R"({"text": "a", "pair": 1})", "\"pair\" must be a string"},
           {R"({"te\nxt": ""})", R"(unknown name "te\nxt" (choose from text, pair))"},
           {"[]", "not a JSON object"},
           {"{", "not valid JSON"}})
    EXPECT_EQ(error_of([&] { parse_classify_line(text); }), expected) << text;
}

TEST(ClassifyLines, RequestsToRankHaveAQueryAndTexts) {
  const RerankLine line = parse_rerank_line(R"({"query": "q", "texts": ["a", "b"], "top": 1})");
  EXPECT_EQ(line.query, "q");
  EXPECT_EQ(line.texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(line.top, 1);
  EXPECT_EQ(parse_rerank_line(R"({"texts": [], "query": ""})").top, std::nullopt);
  for (const auto& [text, expected] : std::initializer_list<std::pair<const char*, std::string>>{
           {R"({"texts": []})", "must have \"query\""},
           {R"({"query": ""})", "must have \"texts\""},
           {R"({"query": "", "texts": "a"})", "\"texts\" must be a list of strings"},
           {R"({"query": "", "texts": ["a", 1]})", "\"texts\" must be a list of strings"},
           {R"({"query": "", "texts": [], "top": -1})", "\"top\" must be an integer from 0"},
           {R"({"query": "", "texts": [], "top": 1.5})", "\"top\" must be an integer from 0"},
           {R"({"query": "", "texts": [], "top": 4294967296})", "\"top\" must be an integer from 0"},
           {R"({"query": "", "text": []})", R"(unknown name "text" (choose from query, texts, top))"}})
    EXPECT_EQ(error_of([&] { parse_rerank_line(text); }), expected) << text;
}

}  // namespace
}  // namespace qkv
