// T5 and its relatives: the output layer, what is refused, and languages. encoder_decoders_test.cc compares their
// results with transformers.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/runs/run.h"
#include "qkv/import.h"
#include "qkv/translator.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

class T5Files : public ::testing::Test {
 protected:
  void copy(const std::string& name) const {
    std::filesystem::remove_all(model());
    std::filesystem::copy(std::string(QKV_GOLDEN_DIR "/encoder_decoders/") + name, model());
  }
  std::string model() const { return directory_ / "model"; }
  std::string out() const { return directory_ / "run"; }

  void change(const std::string& file, const std::string& member, const nlohmann::json& value) const {
    nlohmann::json object = nlohmann::json::parse(testing::slurp(model() + "/" + file));
    object[member] = value;
    testing::spill(model() + "/" + file, object.dump());
  }
  TranslatorRun imported() const {
    std::filesystem::remove_all(out());
    import_model(model(), out());
    return load_run<TranslatorRun>(out());
  }
  std::string error() const {
    const std::string text = testing::error_of([&] { import_model(model(), out()); });
    const size_t place = text.find(directory_.path());
    return place == std::string::npos ? text : text.substr(place + directory_.path().size() + 1);
  }
  std::string error_with(const std::string& member, const nlohmann::json& value) const {
    const std::string before = testing::slurp(model() + "/config.json");
    change("config.json", member, value);
    const std::string message = error();
    testing::spill(model() + "/config.json", before);
    return message;
  }

  testing::TempDir directory_;
};

float first_weight(const TranslatorRun& run) {
  return *testing::values_of(run.model->parameters(), "decoder.norm.weight");
}

// transformers 5 writes tie_word_embeddings for all models, and scale_decoder_outputs for what it meant before.
TEST_F(T5Files, TheScaleOfTheOutputIsAPartOfTheLastNorm) {
  copy("t5");
  const TranslatorRun scaled = imported();
  EXPECT_TRUE(scaled.model->config().tied_output);
  EXPECT_EQ(scaled.model->config().attention.scale, 1);
  change("config.json", "scale_decoder_outputs", false);
  const TranslatorRun plain = imported();
  EXPECT_TRUE(plain.model->config().tied_output);
  EXPECT_FLOAT_EQ(first_weight(plain), first_weight(scaled) * std::sqrt(20.0f));

  copy("flan_t5");
  const float own = first_weight(imported());
  change("config.json", "scale_decoder_outputs", false);
  change("config.json", "tie_word_embeddings", true);
  EXPECT_FALSE(imported().model->config().tied_output);
  EXPECT_EQ(first_weight(imported()), own);
}

TEST_F(T5Files, SequencesHave512TokensUnlessTheFileSaysOtherwise) {
  copy("mt5");
  EXPECT_EQ(imported().model->config().max_length, 512);
  change("config.json", "n_positions", 2000);
  EXPECT_EQ(imported().model->config().max_length, 2000);
}

TEST_F(T5Files, UnsupportedFieldsAreNamed) {
  copy("t5");
  EXPECT_EQ(error_with("feed_forward_proj", "gated-tanh"),
            "model/config.json: feed_forward_proj must be relu, gelu, silu or gelu_new, perhaps with gated- before it "
            "(is \"gated-tanh\")");
  EXPECT_EQ(error_with("is_encoder_decoder", false), "model/config.json: is_encoder_decoder must be true (is false)");
  EXPECT_EQ(error_with("num_decoder_layers", int64_t{1} << 40),
            "model/config.json: num_decoder_layers must be between 1 and 1000 (is 1099511627776)");
  EXPECT_EQ(error_with("relative_attention_num_buckets", 6),
            "model/model.safetensors: the configuration has 8104 parameters (the file has 8112 numbers for them)");
  EXPECT_EQ(error_with("tie_word_embeddings", nlohmann::json::array()),
            "model/config.json: tie_word_embeddings must be true or false");
  change("tokenizer_config.json", "extra_ids", int64_t{1} << 40);
  EXPECT_EQ(error(), "model/tokenizer_config.json: extra_ids must be between 0 and 4096 (is 1099511627776)");
  std::filesystem::remove(model() + "/spiece.model");
  testing::spill(model() + "/tokenizer.json", "{}");
  EXPECT_EQ(error(), "model/tokenizer.json: model is missing, expected an object");
  std::filesystem::remove(model() + "/tokenizer.json");
  EXPECT_EQ(error(), "model: expected tokenizer.json or spiece.model");
}

TEST_F(T5Files, ExtraIdsFollowThePiecesFromTheLastToTheFirst) {
  copy("t5");
  const TranslatorRun run = imported();
  const Tokenizer& tokenizer = run.tokenizers.target;
  const int32_t last = *tokenizer.id("<extra_id_0>");
  EXPECT_EQ(tokenizer.id("<extra_id_2>"), last - 2);
  EXPECT_EQ(tokenizer.size(), last + 1 + 5);  // five rows that no token uses
}

TEST_F(T5Files, MadladNeedsTheLanguageOfTheTarget) {
  copy("madlad");
  imported();
  const Translator translator(out());
  EXPECT_EQ(translator.languages(), (std::vector<std::string>{"de", "en"}));
  TranslateOptions options;
  EXPECT_EQ(testing::error_of([&] { translator.translate({"the dog"}, options); }),
            "line 1: target_language must be one of de, en (is missing)");
  options.target_language = "en";
  EXPECT_EQ(translator.translate({"the dog"}, options).front().source_tokens.front(), "<2en>");
}

}  // namespace
}  // namespace qkv
