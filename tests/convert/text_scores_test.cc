// Generator::score: log-probabilities of texts, equal to those of transformers. tests/golden/transformers/scores.py
// writes the expected ones.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "qkv/generator.h"
#include "qkv/import.h"
#include "tests/support/decoder_cases.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;

class TextScores : public ::testing::Test {
 protected:
  Generator generator_of(const std::string& name) const {
    testing::copy_decoder_case(name, directory_ / "model");
    import_model(directory_ / "model", directory_ / name);
    return Generator(directory_ / name);
  }

  TempDir directory_;
  const json expected_ = json::parse(testing::slurp(QKV_GOLDEN_DIR "/transformers/scores.json"));
};

// float32 differs from the expected float64 by a few times 1e-6 in log p of size 5.
TEST_F(TextScores, AreThoseOfTransformersForEveryWindow) {
  for (const auto& [name, values] : expected_.items()) {
    const Generator generator = generator_of(name);
    auto ids = values["ids"].get<std::vector<int32_t>>();
    ids.erase(ids.begin());  // the start token
    std::string text;
    for (size_t i = 1; i < ids.size(); i++) text += "p" + std::to_string(ids[i]);
    ASSERT_EQ(generator.encode(text), ids) << name;
    for (const json& window : values["windows"]) {
      ScoreOptions options{window["context"], window["stride"]};
      const std::string where = name + ", context " + std::to_string(options.context);
      const TextScore score = generator.score(text, options);
      ASSERT_EQ(score.tokens.size(), ids.size());
      double sum = 0;
      int64_t scored = 0;
      for (size_t i = 0; i < ids.size(); i++) {
        const json& wanted = window["log_probabilities"][i];
        EXPECT_EQ(std::isnan(score.tokens[i].log_probability), wanted.is_null()) << where << " " << i;
        if (wanted.is_null()) continue;
        EXPECT_NEAR(score.tokens[i].log_probability, wanted.get<double>(), 1e-5) << where << " " << i;
        sum += wanted.get<double>(), scored++;
      }
      EXPECT_EQ(score.scored, scored) << where;
      EXPECT_NEAR(score.log_probability, sum, 1e-5 * static_cast<double>(scored)) << where;
      EXPECT_NEAR(score.perplexity(), std::exp(-sum / static_cast<double>(scored)), 1e-5 * score.perplexity()) << where;
    }
  }
}

TEST_F(TextScores, DoNotDependOnOtherTexts) {
  const Generator generator = generator_of("llama");
  std::vector<std::string> texts;
  std::string text;
  for (int i = 0; i < 300; i++) {
    text += "p" + std::to_string(3 + i * i % 29);
    texts.push_back(i % 50 == 7 ? "" : text);
  }
  const ScoreOptions options{.context = 32, .stride = 20, .alternatives = 3};
  const std::vector<TextScore> all = generator.score_all(texts, options);
  for (const size_t i : {size_t{0}, size_t{7}, size_t{120}, texts.size() - 1}) {
    const TextScore alone = generator.score(texts[i], options);
    EXPECT_EQ(all[i].log_probability, alone.log_probability);
    EXPECT_EQ(all[i].scored, alone.scored);
    EXPECT_EQ(alone.scored, std::ssize(alone.tokens));
    for (const GeneratedToken& token : alone.tokens) EXPECT_EQ(token.alternatives.size(), 3U);
  }
  EXPECT_TRUE(std::isnan(all[7].perplexity()));
}

TEST_F(TextScores, AreTheLogProbabilitiesOfGeneratedTokens) {
  const Generator generator = generator_of("gpt2");
  GenerateOptions greedy;
  greedy.temperature = 0;
  greedy.max_tokens = 12;
  greedy.presence_penalty = 5;  // changes what is generated, not log p
  const std::string prompt = "p3p9";
  const Generation found = generator.generate(prompt, greedy);
  const TextScore score = generator.score(prompt + found.text);
  const size_t before = generator.encode(prompt).size();
  ASSERT_EQ(score.tokens.size(), before + found.tokens.size());
  for (size_t i = 0; i < found.tokens.size(); i++)
    EXPECT_NEAR(score.tokens[i + before].log_probability, found.tokens[i].log_probability, 1e-5);
}

TEST_F(TextScores, RefuseOptionsByName) {
  const Generator generator = generator_of("gpt2");
  const auto error = [&](const ScoreOptions& options) { return error_of([&] { generator.score("p3", options); }); };
  EXPECT_EQ(error({.context = 65}), "context must be between 2 and 64, the model's max_length (is 65)");
  EXPECT_EQ(error({.context = 1}), "context must be between 2 and 64, the model's max_length (is 1)");
  EXPECT_EQ(error({.context = 10, .stride = 11}), "stride must be at most context, 10 (is 11)");
  EXPECT_EQ(error({.stride = -1}), "stride must be between 0 and 16777216 (is -1)");
}

}  // namespace
}  // namespace qkv
