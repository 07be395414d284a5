// Models of Llama's family: a real one with its reference text, and invalid configurations.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "decode/generation/generation.h"
#include "io/runs/run.h"
#include "qkv/generator.h"
#include "qkv/import.h"
#include "tests/support/errors.h"
#include "tests/support/generate_options.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;

const std::string kStories = QKV_SHARED_DIR "/cases/stories260K";

class Stories : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kStories)) GTEST_SKIP() << "skipped: ../shared not present";
    std::filesystem::copy(kStories, model());
  }
  std::string model() const { return directory_ / "model"; }
  std::string out() const { return directory_ / "run"; }

  // The error of an import with a member of config.json changed, without the folder of the test.
  std::string error_with(const std::string& member, const json& value) const {
    json config = json::parse(testing::slurp(kStories + "/config.json"));
    config[member] = value;
    std::filesystem::permissions(model() + "/config.json", std::filesystem::perms::owner_all);
    testing::spill(model() + "/config.json", config.dump());
    std::string text = error_of([&] { import_model(model(), out()); });
    EXPECT_FALSE(std::filesystem::exists(out()));
    const size_t place = text.find(directory_.path());
    return place == std::string::npos ? text : text.erase(place, directory_.path().size() + 1);
  }

  TempDir directory_;
};

TEST_F(Stories, GreedyTextMatchesTheReference) {
  const ImportReport report = import_model(model(), out());
  EXPECT_EQ(report.kind, "Llama");
  EXPECT_EQ(report.parameters, 260032);
  const json expected = json::parse(testing::slurp(kStories + "/expected_ids.json"));
  const auto ids = expected.at("ids").get<std::vector<int32_t>>();

  const LanguageRun run = load_run<LanguageRun>(out());
  EXPECT_EQ(run.ends.start, 1);
  EXPECT_EQ(run.ends.ends, (std::vector<int32_t>{1, 2}));
  Arena arena;
  GenerationOptions options;
  options.max_tokens = 200;
  options.temperature = 0;
  const GeneratedIds found = generate_ids(*run.model, {}, run.ends, options, arena);
  EXPECT_EQ(found.ids, std::vector<int32_t>(ids.begin() + 1, ids.end()));

  const Generator generator(out());
  const Generation story = generator.generate("", testing::greedy(200));
  EXPECT_EQ(story.text, testing::slurp(kStories + "/expected.txt"));
  // Generation continues from the beginning of its own text, including spaces and line breaks.
  const std::string half = story.text.substr(0, story.text.find(" One day"));
  EXPECT_TRUE(story.text.starts_with(half + generator.generate(half, testing::greedy(100)).text));
}

TEST_F(Stories, UnsupportedFeaturesAreNamed) {
  const std::string unknown = error_with("model_type", "gemma");
  EXPECT_TRUE(unknown.starts_with("model/config.json: model_type must be one of albert, bart, bert, "));
  EXPECT_TRUE(unknown.ends_with(" (is \"gemma\")"));
  EXPECT_EQ(error_with("hidden_act", "relu2"),
            "model/config.json: hidden_act must be one of relu, gelu, silu, swish, gelu_new, gelu_pytorch_tanh (is "
            "\"relu2\")");
  EXPECT_EQ(error_with("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 4}}),
            "model/config.json: rope_type must be default, linear, llama3 or yarn (is \"dynamic\")");
  EXPECT_EQ(error_with("num_key_value_heads", 3),
            "model/model.safetensors: model: key_value_heads must divide heads (8) or be 0 (is 3)");
  EXPECT_EQ(error_with("num_attention_heads", 0), "model/config.json: num_attention_heads must be at least 1 (is 0)");
  EXPECT_EQ(
      error_with("vocab_size", 500),
      "model/model.safetensors: token embeddings must match the vocabulary (are 500, the vocabulary has 512 tokens)");
  EXPECT_EQ(error_with("hidden_size", 128),
            "model/model.safetensors: the configuration has 520064 parameters (the file has 260032 numbers for them)");
  EXPECT_EQ(
      error_with("num_hidden_layers", 4),
      "model/model.safetensors: tensor \"model.layers.4.input_layernorm.weight\": F32 [64] is not part of the model");
  EXPECT_EQ(error_with("tie_word_embeddings", false), "model/model.safetensors: tensor \"lm_head.weight\" is missing");
  EXPECT_EQ(error_with("max_position_embeddings", int64_t{1} << 40),
            "model/config.json: max_position_embeddings must be at most 1048576 (is 1099511627776)");
}

TEST_F(Stories, AnIndexMayNameOnlyFilesOfItsDirectory) {
  std::filesystem::rename(model() + "/model.safetensors", model() + "/model-1.safetensors");
  json index = {{"weight_map", {{"model.norm.weight", "model-1.safetensors"}}}};
  testing::spill(model() + "/model.safetensors.index.json", index.dump());
  import_model(model(), out());
  EXPECT_EQ(Generator(out()).generate("", testing::greedy(4)).text, "Once upon a time");
  std::filesystem::remove_all(out());
  index["weight_map"]["model.norm.weight"] = "../model-1.safetensors";
  testing::spill(model() + "/model.safetensors.index.json", index.dump());
  EXPECT_EQ(error_of([&] { import_model(model(), out()); }),
            model() + "/model.safetensors.index.json: \"model.norm.weight\" must be in a file of this directory");
}

}  // namespace
}  // namespace qkv
