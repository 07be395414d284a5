// Results as JSON: the bytes that the program prints.
#include "program/lines/result_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace qkv {
namespace {

Translation short_translation() {
  Hypothesis best;
  best.text = "Ein \"Hund\"";
  best.tokens = {"▁Ein", "▁\"Hund\""};
  best.score = -0.25;
  best.log_probability = -0.5;
  best.token_scores = {-0.125, -0.25, -0.125};
  best.words = {{"Ein", -0.125}, {"\"Hund\"", -0.375}};
  best.alignment = {{0, 0}, {2, 1}};
  best.attention = {{0.1F, 0.9F}, {1, 0}};
  Hypothesis empty;
  return {"A dog", {"▁A", "</s>"}, {best, empty}};
}

TEST(ResultJson, TranslationsHaveTheMembersOfTheForm) {
  const std::string begin =
      R"({"source":"A dog","source_tokens":["▁A","</s>"],"hypotheses":[{"text":"Ein \"Hund\"","tokens":["▁Ein","▁\"Hund\""],)"
      R"("score":-0.25,"log_probability":-0.5,"token_scores":[-0.125,-0.25,-0.125])";
  const std::string empty = R"({"text":"","tokens":[],"score":0.0,"log_probability":0.0,"token_scores":[])";
  const std::string words =
      R"(,"words":[{"word":"Ein","log_probability":-0.125},{"word":"\"Hund\"","log_probability":-0.375}])";
  const std::string attention = R"(,"attention":[[0.10000000149011612,0.8999999761581421],[1.0,0.0]])";
  EXPECT_EQ(translation_to_json(short_translation()),
            begin + R"(,"alignment":[[0,0],[2,1]]},)" + empty + R"(,"alignment":[]}]})");
  EXPECT_EQ(translation_to_json(short_translation(), {.alignment = false}), begin + "}," + empty + "}]}");
  EXPECT_EQ(translation_to_json(short_translation(), {true, true, true}),
            begin + words + R"(,"alignment":[[0,0],[2,1]])" + attention + "}," + empty +
                R"(,"alignment":[],"attention":[]}]})");
}

TEST(ResultJson, GenerationsHaveAlternativesOnlyIfThereAreAny) {
  const Generation found = {" x\n", {{" x", -0.5}, {"\n", -1, {{"\n", -1}, {"y", -2, true}}}}, GenerationEnd::stop};
  EXPECT_EQ(generation_to_json("a", found),
            R"({"prompt":"a","text":" x\n","end":"stop","tokens":[{"text":" x","log_probability":-0.5},)"
            R"({"text":"\n","log_probability":-1.0,"alternatives":[{"text":"\n","log_probability":-1.0,"end":false},)"
            R"({"text":"y","log_probability":-2.0,"end":true}]}]})");
  EXPECT_EQ(generation_to_json("", {}), R"({"prompt":"","text":"","end":"length","tokens":[]})");
}

TEST(ResultJson, PartsOfACharacterAreReplaced) {
  const Generation found = {"\xE2\x82", {{"\xE2", -1}, {"\x82", -1}}, GenerationEnd::length};
  EXPECT_EQ(generation_to_json("\xFF", found),
            R"({"prompt":"�","text":"�","end":"length","tokens":[{"text":"�","log_probability":-1.0},)"
            R"({"text":"�","log_probability":-1.0}]})");
  EXPECT_EQ(embedding_to_json("\xFF", {}), R"({"text": "�", "vector": []})");
}

TEST(ResultJson, VectorsHaveTheFewestDigits) {
  const std::vector<float> vector = {0.1F, -1, 1e-7F, 16777216};
  EXPECT_EQ(embedding_to_json("a\t\"b\"", vector), R"({"text": "a\t\"b\"", "vector": [0.1, -1, 1e-07, 16777216]})");
}

TEST(ResultJson, ClassificationsNameTheLabels) {
  const std::vector<std::string> labels = {"bad", "good"};
  const std::vector<LabelScore> best = {{1, 0.9F}, {0, 1e-9F}};
  EXPECT_EQ(classification_to_json({"a"}, best, labels),
            R"({"text":"a","labels":[{"label":"good","score":0.9},{"label":"bad","score":1e-09}]})");
  EXPECT_EQ(classification_to_json({"a", "b"}, {}, labels), R"({"text":"a","pair":"b","labels":[]})");
}

TEST(ResultJson, RankingsHaveIndicesAndTexts) {
  EXPECT_EQ(ranking_to_json("q", {"a", "b"}, {{{1, 0.75F}, {0, -12.3F}}}),
            R"({"query":"q","texts":[{"index":1,"score":0.75,"text":"b"},{"index":0,"score":-12.3,"text":"a"}]})");
  EXPECT_EQ(ranking_to_json("", {}, {}), R"({"query":"","texts":[]})");
}

TEST(ResultJson, ScoresReadBackAsTheSameFloat) {
  const std::vector<std::string> labels = {"x"};
  for (const float score : {0.1F, 1.F / 3, 3.4028235e38F, std::numeric_limits<float>::denorm_min(), -0.F}) {
    const std::string json = classification_to_json({""}, std::vector<LabelScore>{{0, score}}, labels);
    EXPECT_EQ(static_cast<float>(std::stod(json.substr(json.rfind(':') + 1))), score) << json;
  }
}

TEST(ResultJson, ErrorsHaveTheIdIfThereIsOne) {
  EXPECT_EQ(error_to_json("must have \"text\""), R"({"error":"must have \"text\""})");
  EXPECT_EQ(error_to_json("no", R"({"n":9})"), R"({"id":{"n":9},"error":"no"})");
}

}  // namespace
}  // namespace qkv
