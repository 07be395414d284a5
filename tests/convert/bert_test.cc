// Encoders of BERT's family: hidden states equal to those of transformers, and refused files.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/runs/run.h"
#include "qkv/import.h"
#include "tests/support/bert_case.h"
#include "tests/support/errors.h"
#include "tests/support/numeric.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::BertCase;
using testing::error_of;
using testing::TempDir;

constexpr double kTolerance = 1e-5;  // relative, of all hidden states of a model in float32

const ImportOptions kTokens = testing::listed_tokens();

// Imports a model and expects the hidden states of transformers; returns the report.
ImportReport expect_hidden_states(const std::string& name) {
  SCOPED_TRACE(name);
  const BertCase expected(name);
  const TempDir directory;
  const ImportReport report = import_model(expected.path(), directory / "run", kTokens);
  const EncoderRun run = load_run<EncoderRun>(directory / "run");
  Packed packed;
  for (const auto& text : expected.ids()) packed.append(text);
  Arena arena;
  Context context{.arena = arena, .inference = true};
  const Matrix<float> h = run.model->hidden(packed, context);
  const std::vector<float> found(h.row(0), h.row(h.rows));
  EXPECT_LE(testing::relative_error(found, expected.values<float>("hidden")), kTolerance);
  return report;
}

TEST(Bert, HiddenStatesMatchTransformers) {
  const ImportReport report = expect_hidden_states("sentence");
  EXPECT_EQ(report.kind, "BERT");
  EXPECT_EQ(report.notes, (std::vector<std::string>{"left out: pooler (not needed for hidden states)"}));
  EXPECT_EQ(report.config.activation, Activation::gelu);
}

TEST(Bert, HiddenStatesMatchInsideAModelWithHeadsInSeveralFilesWithOldNames) {
  const ImportReport report = expect_hidden_states("pretraining");
  EXPECT_EQ(report.notes,
            (std::vector<std::string>{"left out: cls.seq_relationship, pooler (not needed for hidden states)"}));
  EXPECT_EQ(report.config.activation, Activation::gelu_tanh);
  EXPECT_EQ(report.config.source_vocab, 16);
}

TEST(Bert, RobertaStartsPositionsAfterThePadding) {
  const ImportReport report = expect_hidden_states("roberta");
  EXPECT_EQ(report.kind, "RoBERTa");
  EXPECT_EQ(report.notes, std::vector<std::string>());
  EXPECT_EQ(report.config.max_length, 16);
}

TEST(Bert, DistilBertHasNoTokenTypes) {
  const ImportReport report = expect_hidden_states("distilbert");
  EXPECT_EQ(report.kind, "DistilBERT");
  EXPECT_EQ(report.notes, std::vector<std::string>());
}

TEST(Bert, MpnetAddsARelativeBiasToItsPositions) {
  const ImportReport report = expect_hidden_states("mpnet");
  EXPECT_EQ(report.kind, "MPNet");
  EXPECT_EQ(report.notes, std::vector<std::string>());
  EXPECT_EQ(report.config.max_length, 16);
  EXPECT_EQ(report.config.attention.relative_buckets, 32);
}

TEST(Bert, ModernBertHasLocalLayers) {
  const ImportReport report = expect_hidden_states("modernbert");
  EXPECT_EQ(report.kind, "ModernBERT");
  EXPECT_EQ(report.notes, std::vector<std::string>());
  EXPECT_EQ(report.config.attention.layer_pattern, "gll");
  EXPECT_EQ(report.config.attention.window, 3);
  EXPECT_EQ(report.config.rotary.local_base, 100);
}

TEST(Bert, ElectraProjectsItsEmbeddings) {
  const ImportReport report = expect_hidden_states("electra");
  EXPECT_EQ(report.kind, "ELECTRA");
  EXPECT_EQ(report.notes,
            (std::vector<std::string>{"left out: discriminator_predictions (not needed for hidden states)"}));
  EXPECT_EQ(report.config.embedding_width, 8);
  EXPECT_FALSE(report.config.shared_layers);
}

TEST(Bert, AlbertSharesTheParametersOfItsLayers) {
  const ImportReport report = expect_hidden_states("albert");
  EXPECT_EQ(report.kind, "ALBERT");
  EXPECT_EQ(report.notes, std::vector<std::string>());
  EXPECT_EQ(report.config.embedding_width, 20);
  EXPECT_EQ(report.config.activation, Activation::gelu_tanh);
  EXPECT_TRUE(report.config.shared_layers);
  EXPECT_EQ(report.config.encoder_layers, 3);
  ModelConfig separate = report.config;
  separate.shared_layers = false;
  const int64_t head = 20 * 13 + 2 * 20 + 48;
  const int64_t others = 48 * 20 + 16 * 20 + 2 * 20 + 12 * 21 + head;  // tables, their norm, the projection, the head
  EXPECT_EQ(count_parameters(separate) - others, 3 * (report.parameters - others));
}

TEST(Bert, AlbertTokenizesLikeTransformers) {
  const TempDir directory;
  import_model(BertCase("albert").path(), directory / "run");
  const EncoderRun run = load_run<EncoderRun>(directory / "run");
  const json expected = json::parse(testing::slurp(BertCase("albert").path() + "/tokenized.json"));
  ASSERT_GE(expected.at("lines").size(), 10U);
  for (size_t i = 0; i < expected.at("lines").size(); i++) {
    const std::string line = expected.at("lines").at(i);
    std::vector<int32_t> ids = run.codec.encode(prepare_text(run.embedding, line), line);
    ids.insert(ids.begin(), run.edges.before.begin(), run.edges.before.end());
    ids.insert(ids.end(), run.edges.after.begin(), run.edges.after.end());
    EXPECT_EQ(ids, expected.at("ids").at(i).get<std::vector<int32_t>>()) << line;
  }
}

// A copy of the sentence encoder that tests change.
class BertFiles : public ::testing::Test {
 protected:
  void SetUp() override { copy("sentence"); }
  void copy(const std::string& name) {
    std::filesystem::remove_all(model());
    std::filesystem::copy(BertCase(name).path(), model(), std::filesystem::copy_options::recursive);
  }

  std::string model() const { return directory_ / "model"; }
  std::string out() const { return directory_ / "run"; }

  void change(const std::string& file, const std::string& member, const json& value) {
    json object =
        std::filesystem::exists(model() + "/" + file) ? json::parse(testing::slurp(model() + "/" + file)) : json();
    object[member] = value;
    testing::spill(model() + "/" + file, object.dump());
  }
  EmbeddingConfig imported() {
    import_model(model(), out(), kTokens);
    const EmbeddingConfig config = load_run<EncoderRun>(out()).embedding;
    std::filesystem::remove_all(out());
    return config;
  }

  // The error of an import, without the folder of the test.
  std::string error(const ImportOptions& options = kTokens) const {
    std::string text = error_of([&] { import_model(model(), out(), options); });
    EXPECT_FALSE(std::filesystem::exists(out()));
    const size_t place = text.find(directory_.path());
    return place == std::string::npos ? text : text.erase(place, directory_.path().size() + 1);
  }
  // The error with a changed member of a file, which is restored afterwards.
  std::string error_with(const std::string& file, const std::string& member, const json& value) {
    const bool existed = std::filesystem::exists(model() + "/" + file);
    const std::string before = existed ? testing::slurp(model() + "/" + file) : "";
    change(file, member, value);
    const std::string message = error();
    existed ? testing::spill(model() + "/" + file, before) : void(std::filesystem::remove(model() + "/" + file));
    return message;
  }

  TempDir directory_;
};

TEST_F(BertFiles, SayHowTextBecomesAVector) {
  const EmbeddingConfig expected = {.start = "[CLS]",
                                    .end = "[SEP]",
                                    .unknown = "[UNK]",
                                    .max_length = 14,
                                    .pooling = Pooling::mean,
                                    .normalize = true};
  EXPECT_EQ(imported(), expected);

  change("tokenizer_config.json", "cls_token", "a");
  change("tokenizer_config.json", "sep_token", {{"content", "b"}});
  change("sentence_bert_config.json", "max_seq_length", 100);
  change("sentence_bert_config.json", "do_lower_case", true);
  change("1_Pooling/config.json", "pooling_mode_mean_tokens", false);
  change("1_Pooling/config.json", "pooling_mode_cls_token", true);
  change("config_sentence_transformers.json", "default_prompt_name", "query");
  change("config_sentence_transformers.json", "prompts", {{"query", "c "}, {"passage", "d "}});
  EXPECT_EQ(imported(), (EmbeddingConfig{.lowercase = true,
                                         .prefix = "c ",
                                         .start = "a",
                                         .end = "b",
                                         .unknown = "[UNK]",
                                         .max_length = 16,
                                         .pooling = Pooling::first,
                                         .normalize = true,
                                         .prompt_names = {"passage", "query"},
                                         .prompts = {"d ", "c "}}));
  std::filesystem::remove(model() + "/modules.json");
  EXPECT_EQ(imported(), (EmbeddingConfig{.start = "a", .end = "b", .unknown = "[UNK]"}));
}

TEST_F(BertFiles, UnsupportedConfigurationsAreNamed) {
  const auto error = [&](const std::string& member, const json& value) {
    return error_with("config.json", member, value);
  };
  EXPECT_EQ(error("hidden_act", "tanh"),
            "model/config.json: hidden_act must be one of relu, gelu, silu, swish, gelu_new, gelu_pytorch_tanh (is "
            "\"tanh\")");
  EXPECT_EQ(error("is_decoder", true), "model/config.json: is_decoder must be false (is true)");
  EXPECT_EQ(error("position_embedding_type", "relative_key"),
            "model/config.json: position_embedding_type must be absolute (is \"relative_key\")");
  EXPECT_EQ(
      error("num_attention_heads", 0),
      "model/config.json: num_attention_heads must divide hidden_size (num_attention_heads is 0, hidden_size is 12)");
  EXPECT_EQ(
      error("num_attention_heads", 5),
      "model/config.json: num_attention_heads must divide hidden_size (num_attention_heads is 5, hidden_size is 12)");
  EXPECT_EQ(error("max_position_embeddings", int64_t{1} << 40),
            "model/config.json: max_position_embeddings must be at most 1048576 (is 1099511627776)");
  EXPECT_EQ(error("max_position_embeddings", 15),
            "model/model.safetensors: tensor \"embeddings.position_embeddings.weight\": must have 15 rows (has 16)");
  EXPECT_EQ(error("vocab_size", 12),
            "model/model.safetensors: the vocabulary must not be larger than the 12 embeddings (has 13 tokens)");
  EXPECT_EQ(error("vocab_size", 14),
            "model/model.safetensors: the configuration has 2752 parameters (the file has 2740 numbers for them)");
  EXPECT_EQ(error("num_hidden_layers", 1),
            "model/model.safetensors: tensor \"encoder.layer.1.attention.output.LayerNorm.bias\": F32 [12] is not part "
            "of the model");
  EXPECT_EQ(error("model_type", "distilbert"), "model/config.json: n_layers is missing");
}

TEST_F(BertFiles, UnsupportedModulesAndPoolingsAreNamed) {
  const std::string modes =
      "model/1_Pooling/config.json: pooling_mode must be one of cls, max, mean, mean_sqrt_len_tokens, weightedmean, "
      "lasttoken ";
  EXPECT_EQ(error_with("1_Pooling/config.json", "pooling_mode_cls_token", true), modes + "(is \"cls and mean\")");
  EXPECT_EQ(error_with("1_Pooling/config.json", "pooling_mode_mean_tokens", false), modes + "(is none)");
  EXPECT_EQ(error_with("sentence_bert_config.json", "max_seq_length", -1),
            "model/sentence_bert_config.json: max_seq_length must be at least 0 (is -1)");
  EXPECT_EQ(error_with("config_sentence_transformers.json", "default_prompt_name", "query"),
            "model/config_sentence_transformers.json: default_prompt_name must be one of the prompts (is \"query\")");
  EXPECT_EQ(error_with("config_sentence_transformers.json", "prompts", "a"),
            "model/config_sentence_transformers.json: prompts must be an object");
  const auto module = [&](const char* kind, const char* path) {
    const json first = {{"type", "sentence_transformers.models.Transformer"}, {"path", ""}};
    testing::spill(model() + "/modules.json", json::array({first, {{"type", kind}, {"path", path}}}).dump());
    return error();
  };
  EXPECT_EQ(module("sentence_transformers.models.LSTM", "2_LSTM"),
            "model/modules.json: modules must be Transformer at path \"\", then Pooling, Dense and at last Normalize "
            "(found \"sentence_transformers.models.LSTM\" at path \"2_LSTM\")");
  EXPECT_EQ(module("sentence_transformers.models.Pooling", "../model/1_Pooling"),
            "model/modules.json: path must be a folder of this directory (is \"../model/1_Pooling\")");
  testing::spill(model() + "/modules.json", "[3]");
  EXPECT_EQ(error(), "model/modules.json: every module must have the text type");
}

TEST_F(BertFiles, NeedATokenizerOrAListOfTokens) {
  change("tokenizer_config.json", "cls_token", "<cls>");
  EXPECT_EQ(error(), "model/model.safetensors: token \"<cls>\" is not in the vocabulary");
  std::filesystem::remove(model() + "/vocab.txt");
  EXPECT_EQ(error(), "model: found no list of tokens: expected vocab.txt, vocab.json or tokenizer.json");
  EXPECT_EQ(error({}), "model: expected tokenizer.json, tokenizer.model, vocab.json with merges.txt, or vocab.txt");
}

TEST_F(BertFiles, PositionsOfRobertaNeedRowsAfterThePadding) {
  copy("roberta");
  EXPECT_EQ(error_with("config.json", "pad_token_id", -1),
            "model/config.json: pad_token_id must be between 0 and 1048576 (is -1)");
  EXPECT_EQ(error_with("config.json", "pad_token_id", 17),
            "model/config.json: max_position_embeddings must be above 18, which pad_token_id asks for (is 18)");
  change("config.json", "pad_token_id", 2);  // fewer positions are left
  import_model(model(), out(), kTokens);
  EXPECT_EQ(read_config(RunDirectory(out())).model.max_length, 15);
}

TEST_F(BertFiles, MpnetHas32BucketsAndATokenizerOfItsOwn) {
  copy("mpnet");
  EXPECT_EQ(error_with("config.json", "relative_attention_num_buckets", 16),
            "model/config.json: relative_attention_num_buckets must be 32 (is 16)");
  EXPECT_EQ(error_with("config.json", "max_position_embeddings", 2),
            "model/config.json: max_position_embeddings must be above 2 (is 2)");
  change("tokenizer_config.json", "tokenizer_class", "MPNetTokenizer");
  import_model(model(), out());
  const EncoderRun run = load_run<EncoderRun>(out());
  EXPECT_EQ(run.codec.encode("A c", "text"), (std::vector<int32_t>{5, 7}));
  EXPECT_EQ(run.edges.before, std::vector<int32_t>{0});
  EXPECT_EQ(run.edges.after, std::vector<int32_t>{2});
}

TEST_F(BertFiles, GroupsOfDifferentLayersInAlbertAreRefused) {
  copy("albert");
  EXPECT_EQ(error_with("config.json", "num_hidden_groups", 2), "model/config.json: num_hidden_groups must be 1 (is 2)");
  EXPECT_EQ(error_with("config.json", "inner_group_num", 2), "model/config.json: inner_group_num must be 1 (is 2)");
  EXPECT_EQ(error_with("config.json", "embedding_size", 0),
            "model/config.json: embedding_size must be at least 1 (is 0)");
}

// XLM-R has SentencePiece tokenizers with the ids of fairseq.
TEST_F(BertFiles, PiecesMayHaveTheIdsOfFairseq) {
  copy("roberta");
  const Tokenizer pieces = Tokenizer::train(std::vector<std::string>(40, "a b c ab"), {.vocab_size = 11});
  testing::spill(model() + "/sentencepiece.bpe.model", pieces.serialized());
  change("config.json", "model_type", "xlm-roberta");
  import_model(model(), out());
  const EncoderRun run = load_run<EncoderRun>(out());
  std::vector<int32_t> expected = pieces.encode("a c ab z");
  for (int32_t& id : expected) id = id == 0 ? 3 : id + 1;
  EXPECT_EQ(run.codec.encode("a c ab z", "text"), expected);
  EXPECT_EQ(run.edges.before, std::vector<int32_t>{0});
  EXPECT_EQ(run.edges.after, std::vector<int32_t>{2});
  EXPECT_EQ(run.codec.size(), pieces.size() + 2);
}

}  // namespace
}  // namespace qkv
