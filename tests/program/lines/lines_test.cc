// The lines that qkv translate and qkv recommend print: one for each result, whatever its text.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "program/lines/jobs.h"
#include "qkv/text.h"

namespace qkv {
namespace {

const std::string kText = std::string("a\nb\r\nc\rd\u2028e\u0085f\v", 16) + std::string("g\0h", 3);
const std::string kLine = "a b c d e f g h";

Translation translation_of(const std::string& text) {
  Hypothesis h;
  h.text = text;
  h.alignment = {{0, 0}, {1, 2}};
  h.words = {{"a", -0.5}, {"b", -1}};
  h.score = -0.25;
  return {text, {"x", "y"}, {h, h}};
}

TEST(TranslationLines, HaveOneLineForEachHypothesis) {
  Translation translation = translation_of(kText);
  EXPECT_EQ(translation_lines(translation, 7, {.n_best = true}),
            "7 ||| " + kLine + " ||| -0.250000\n7 ||| " + kLine + " ||| -0.250000\n");
  translation.hypotheses.pop_back();
  EXPECT_EQ(translation_lines(translation, 7, {}), kLine + "\n");
  EXPECT_EQ(translation_lines(translation, 7, {.scores = true, .word_scores = true, .alignment = true}),
            kLine + " ||| 0-0 1-2 ||| -0.5000 -1.0000 ||| -0.250000\n");
}

TEST(TranslationLines, HaveTheTextAsItIsInJson) {
  const std::string line = translation_lines(translation_of(kText), 0, {.json = true});
  EXPECT_EQ(one_line(line), line.substr(0, line.size() - 1) + " ");  // no other line end
  const nlohmann::json json = nlohmann::json::parse(line);
  EXPECT_EQ(json["source"], kText);
  EXPECT_EQ(json["hypotheses"][0]["text"], kText);
}

}  // namespace
}  // namespace qkv
