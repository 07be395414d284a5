// Directories that versions of sentence-transformers saved (tests/golden/sentence_transformers): vectors and scores
// equal to those of the library, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/to_size.h"
#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "qkv/classifier.h"
#include "qkv/embedder.h"
#include "qkv/import.h"
#include "qkv/runs.h"
#include "qkv/text.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;

constexpr float kVectorTolerance = 1e-5F;  // of components of size 1, in float32 on both sides

std::string golden(const std::string& name) { return QKV_GOLDEN_DIR "/sentence_transformers/" + name; }

std::vector<std::string> texts() { return read_lines(golden("texts.txt")); }

std::vector<float> expected(const std::string& name, const std::string& tensor) {
  const Safetensors file = Safetensors::open(golden(name) + "/expected.safetensors");
  const TensorView* found = file.find(tensor);
  if (!found) return {};
  std::vector<float> values(found->data.size() / sizeof(float));
  std::memcpy(values.data(), found->data.data(), found->data.size());
  return values;
}

// The largest difference, relative to the largest component if that is above 1.
float difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return INFINITY;
  float largest = 0, size = 1;
  for (size_t i = 0; i < a.size(); i++) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return largest / size;
}

// A copy of a golden directory that can be changed, and the run that is imported from it.
class SentenceModel {
 public:
  explicit SentenceModel(const std::string& name) {
    std::filesystem::copy(golden(name), model(), std::filesystem::copy_options::recursive);
  }

  std::string model() const { return directory_ / "model"; }
  std::string run() const { return directory_ / "run"; }
  std::string import() const {
    std::filesystem::remove_all(run());
    import_model(model(), run());
    return run();
  }
  std::string error() const {
    std::string text = error_of([&] { import(); });
    const size_t place = text.find(directory_.path());
    return place == std::string::npos ? text : text.erase(place, directory_.path().size() + 1);
  }
  // Sets a member of a JSON file; null removes it.
  void change(const std::string& file, const std::string& member, const json& value) const {
    const std::string path = model() + "/" + file;
    json object = std::filesystem::exists(path) ? json::parse(testing::slurp(path)) : json::object();
    value.is_null() ? void(object.erase(member)) : void(object[member] = value);
    testing::spill(path, object.dump());
  }
  std::string error_with(const std::string& file, const std::string& member, const json& value) const {
    const std::string path = model() + "/" + file;
    const bool existed = std::filesystem::exists(path);
    const std::string before = existed ? testing::slurp(path) : "";
    change(file, member, value);
    const std::string message = error();
    existed ? testing::spill(path, before) : void(std::filesystem::remove(path));
    return message;
  }

 private:
  TempDir directory_;
};

// Expects the vectors of the library, by default and with the prompt "query".
void expect_vectors(const std::string& name) {
  SCOPED_TRACE(name);
  const SentenceModel model(name);
  const Embedder embedder(model.import());
  EXPECT_LE(difference(embedder.embed(texts()).values, expected(name, "vectors")), kVectorTolerance);
  const std::vector<float> query = expected(name, "query");
  if (query.empty()) return;
  EXPECT_LE(difference(embedder.embed(texts(), {.prompt_name = "query"}).values, query), kVectorTolerance);
}

TEST(SentenceTransformers, VectorsAreThoseOfEachVersion) {
  for (const char* name : {"mean3", "mean5", "mean6", "modernbert_6"}) expect_vectors(name);
}

TEST(SentenceTransformers, LinearLayersAreComputed) {
  for (const char* name : {"dense3", "dense5", "dense6"}) {
    expect_vectors(name);
    const SentenceModel model(name);
    const Embedder embedder(model.import());
    EXPECT_EQ(embedder.width(), 8);
    EXPECT_EQ(load_run<EncoderRun>(model.run()).embedding.dense, (std::vector<std::string>{"tanh", "identity"}));
  }
}

TEST(SentenceTransformers, ActivationsOfLinearLayersAreThoseOfTorch) {
  const SentenceModel model("dense5");
  testing::spill(model.model() + "/modules.json",
                 json::array({{{"type", "sentence_transformers.models.Transformer"}, {"path", ""}},
                              {{"type", "sentence_transformers.models.Pooling"}, {"path", "1_Pooling"}},
                              {{"type", "sentence_transformers.models.Dense"}, {"path", "2_Dense"}}})
                     .dump());
  const auto vector = [&](const char* activation) {
    model.change("2_Dense/config.json", "activation_function", activation);
    return Embedder(model.import()).embed({"the cat"}).values;
  };
  const std::vector<float> x = vector("torch.nn.modules.linear.Identity");
  const std::pair<const char*, double (*)(double)> activations[] = {
      {"torch.nn.modules.activation.Tanh", [](double z) { return std::tanh(z); }},
      {"torch.nn.modules.activation.ReLU", [](double z) { return std::max(z, 0.0); }},
      {"torch.nn.modules.activation.GELU", [](double z) { return z / 2 * (1 + std::erf(z / std::sqrt(2.0))); }},
      {"torch.nn.modules.activation.Sigmoid", [](double z) { return 1 / (1 + std::exp(-z)); }},
      {"torch.nn.modules.activation.SiLU", [](double z) { return z / (1 + std::exp(-z)); }},
  };
  for (const auto& [name, function] : activations) {
    std::vector<float> wanted;
    for (const float z : x) wanted.push_back(static_cast<float>(function(static_cast<double>(z))));
    EXPECT_LE(difference(vector(name), wanted), kVectorTolerance) << name;
  }
}

TEST(SentenceTransformers, EveryModeOfPoolingIsReadInBothSpellings) {
  const std::pair<const char*, const char*> modes[] = {
      {"cls", "pooling_mode_cls_token"},
      {"max", "pooling_mode_max_tokens"},
      {"mean", "pooling_mode_mean_tokens"},
      {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
      {"weightedmean", "pooling_mode_weightedmean_tokens"},
      {"lasttoken", "pooling_mode_lasttoken"},
  };
  const SentenceModel newer("mean6"), older("mean5");
  const auto vectors = [&](const SentenceModel& model) {
    return Embedder(model.import()).embed(texts(), {.normalize = false, .prefix = ""}).values;
  };
  for (const auto& [mode, flag] : modes) {
    newer.change("1_Pooling/config.json", "pooling_mode", mode);
    EXPECT_LE(difference(vectors(newer), expected("mean6", mode)), kVectorTolerance) << mode;
    older.change("1_Pooling/config.json", "pooling_mode_mean_tokens", false);
    older.change("1_Pooling/config.json", flag, true);
    EXPECT_LE(difference(vectors(older), expected("mean5", mode)), kVectorTolerance) << flag;
    older.change("1_Pooling/config.json", flag, false);
  }
}

TEST(SentenceTransformers, OneModeMayBeAList) {
  const SentenceModel model("mean6");
  model.change("1_Pooling/config.json", "pooling_mode", {"max"});
  EXPECT_EQ((model.import(), load_run<EncoderRun>(model.run()).embedding.pooling), Pooling::max);
}

TEST(SentenceTransformers, PromptsAreChosenByName) {
  const SentenceModel model("mean6");
  const Embedder embedder(model.import());
  using Prompts = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(embedder.prompts(), (Prompts{{"document", ""}, {"passage", "passage: "}, {"query", "query: "}}));
  const auto vectors = [&](const EmbedOptions& options) { return embedder.embed({"the cat"}, options).values; };
  EXPECT_EQ(vectors({}), vectors({.prompt_name = "passage"}));  // default_prompt_name
  EXPECT_EQ(vectors({.prompt_name = "query"}), vectors({.prefix = "query: "}));
  EXPECT_EQ(vectors({.prompt_name = "document"}), vectors({.prefix = ""}));
  EXPECT_EQ(error_of([&] { vectors({.prompt_name = "title"}); }),
            "prompt_name must be one of document, passage, query (is \"title\")");
  EXPECT_EQ(error_of([&] { vectors({.prefix = "a", .prompt_name = "query"}); }),
            "prefix and prompt_name must not both be set");
  model.change("config_sentence_transformers.json", "prompts", nullptr);
  model.change("config_sentence_transformers.json", "default_prompt_name", nullptr);
  const Embedder without(model.import());
  EXPECT_EQ(error_of([&] { without.embed({"a"}, {.prompt_name = "query"}); }),
            "prompt_name must not be set: the run has no prompts (is \"query\")");
}

TEST(SentenceTransformers, TheLengthIsThatOfTheTokenizerUnlessTheModuleHasOne) {
  const SentenceModel model("mean6");
  EXPECT_EQ(Embedder(model.import()).max_length(), 18);  // model_max_length
  model.change("sentence_bert_config.json", "max_seq_length", 25);
  EXPECT_EQ(Embedder(model.import()).max_length(), 25);
  model.change("sentence_bert_config.json", "max_seq_length", nullptr);
  model.change("tokenizer_config.json", "model_max_length", 1e30);
  EXPECT_EQ(Embedder(model.import()).max_length(), 32);  // max_position_embeddings
}

TEST(SentenceTransformers, ScoresOfCrossEncodersAreThoseOfEachVersion) {
  std::vector<ClassifierInput> pairs;
  for (const std::string& line : read_lines(golden("pairs.txt")))
    pairs.push_back({line.substr(0, line.find('\t')), line.substr(line.find('\t') + 1)});
  for (const char* name : {"cross3", "cross5", "cross6", "labels6"}) {
    const SentenceModel model(name);
    const Classifier classifier(model.import());
    EXPECT_EQ(classifier.max_length(), std::string_view(name) == "cross3" ? 20 : 16) << name;
    std::vector<float> scores(pairs.size() * classifier.labels().size());
    const Classifications found = classifier.classify(pairs, {.top = 0});
    for (size_t i = 0; i < pairs.size(); i++)
      for (const LabelScore& score : found.texts[i])
        scores[i * classifier.labels().size() + to_size(score.label)] = score.score;
    EXPECT_LE(difference(scores, expected(name, "scores")), kVectorTolerance) << name;
  }
}

TEST(SentenceTransformers, QuantizedRunsKeepPromptsAndLinearLayers) {
  const SentenceModel model("dense6");
  model.change("config_sentence_transformers.json", "prompts", {{"query", "a "}});
  const QuantizeReport report = quantize_run(model.import(), "", 8);
  const Embedder embedder(report.out);
  EXPECT_EQ(embedder.width(), 8);
  EXPECT_EQ(embedder.prompts().size(), 1U);
  EXPECT_LE(difference(embedder.embed(texts()).values, expected("dense6", "vectors")), 0.1F);  // 8-bit weights
}

TEST(SentenceTransformers, UnsupportedSettingsAreNamed) {
  const SentenceModel model("dense6");
  const char *pooling = "1_Pooling/config.json", *dense = "2_Dense/config.json";
  const std::string modes =
      "pooling_mode must be one of cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken ";
  EXPECT_EQ(model.error_with(pooling, "pooling_mode", "attention"),
            "model/1_Pooling/config.json: " + modes + "(is \"attention\")");
  EXPECT_EQ(model.error_with(pooling, "pooling_mode", {"mean", "max"}),
            "model/1_Pooling/config.json: " + modes + "(is \"mean and max\")");
  EXPECT_EQ(model.error_with(pooling, "pooling_mode", nullptr), "model/1_Pooling/config.json: " + modes + "(is none)");
  EXPECT_EQ(model.error_with(pooling, "pooling_mode", 3),
            "model/1_Pooling/config.json: pooling_mode must be a text or a list of texts");
  EXPECT_EQ(
      model.error_with(dense, "activation_function", "torch.nn.modules.activation.PReLU"),
      "model/2_Dense/config.json: activation_function must be one of torch.nn.Identity, Tanh, ReLU, GELU, Sigmoid "
      "and SiLU (is \"torch.nn.modules.activation.PReLU\")");
  EXPECT_EQ(model.error_with(dense, "use_residual", true),
            "model/2_Dense/config.json: use_residual must be false (is true)");
  EXPECT_EQ(model.error_with(dense, "module_input_name", "token_embeddings"),
            "model/2_Dense/config.json: module_input_name must be sentence_embedding (is \"token_embeddings\")");
  EXPECT_EQ(model.error_with(dense, "out_features", 21),
            "model/2_Dense/config.json: out_features must be 20, as the weights have it (is 21)");
  EXPECT_EQ(model.error_with(dense, "bias", false),
            "model/2_Dense/model.safetensors: tensor \"linear.bias\": F32 [20] is not part of the model");
  EXPECT_EQ(model.error_with("sentence_bert_config.json", "transformer_task", "fill-mask"),
            "model/sentence_bert_config.json: transformer_task must be feature-extraction (is \"fill-mask\")");
  EXPECT_EQ(model.error_with("sentence_bert_config.json", "query_length", 8),
            "model/sentence_bert_config.json: query_length is not supported (is \"8\")");
  EXPECT_EQ(model.error_with("config_sentence_transformers.json", "default_prompt_name", "title"),
            "model/config_sentence_transformers.json: default_prompt_name must be one of the prompts (is \"title\")");
  model.change("config_sentence_transformers.json", "prompts", {{"query", "a "}});
  EXPECT_EQ(model.error_with(pooling, "include_prompt", false),
            "model/1_Pooling/config.json: include_prompt must be true in a model with prompts (is false)");
  std::filesystem::remove(model.model() + "/3_Dense/model.safetensors");
  EXPECT_EQ(model.error(), "model/3_Dense: expected model.safetensors or pytorch_model.bin");
}

TEST(SentenceTransformers, UnknownModulesAndOrdersAreNamed) {
  const SentenceModel model("dense6");
  const auto error_of_modules = [&](const std::vector<std::string>& kinds) {
    json modules = json::array();
    for (const std::string& kind : kinds)
      modules.push_back({{"type", "sentence_transformers.models." + kind},
                         {"path", kind == "Transformer" ? ""
                                  : kind == "Dense"     ? "2_Dense"
                                                        : "1_Pooling"}});
    testing::spill(model.model() + "/modules.json", modules.dump());
    return model.error();
  };
  const std::string must =
      "model/modules.json: modules must be Transformer at path \"\", then Pooling, Dense and at last Normalize ";
  for (const char* kind : {"LayerNorm", "WeightedLayerPooling", "Router", "LSTM", "CNN", "WordWeights"})
    EXPECT_EQ(error_of_modules({"Transformer", "Pooling", kind}),
              must + "(found \"sentence_transformers.models." + kind + "\" at path \"1_Pooling\")");
  EXPECT_EQ(error_of_modules({"StaticEmbedding"}),
            must + "(found \"sentence_transformers.models.StaticEmbedding\" at path \"1_Pooling\")");
  EXPECT_EQ(error_of_modules({"Transformer", "Pooling", "Normalize", "Dense"}), must + "(found Dense after Normalize)");
  EXPECT_EQ(error_of_modules({"Transformer", "Pooling", "Pooling"}), must + "(found Pooling after Pooling)");
  const std::string second = "model/modules.json: the module after Transformer must be Pooling";
  EXPECT_EQ(error_of_modules({"Transformer"}), second);
  EXPECT_EQ(error_of_modules({"Transformer", "Dense", "Pooling"}), second);
}

TEST(SentenceTransformers, CrossEncodersWithOtherModulesOrActivationsAreRefused) {
  const SentenceModel model("cross6");
  const char* file = "config_sentence_transformers.json";
  EXPECT_EQ(
      model.error_with(file, "activation_fn", "torch.nn.modules.activation.Tanh"),
      "model/config_sentence_transformers.json: the activation function of sentence-transformers must be Sigmoid, "
      "Softmax or Identity of torch.nn (is \"torch.nn.modules.activation.Tanh\")");
  EXPECT_EQ(model.error_with("sentence_bert_config.json", "transformer_task", "text-generation"),
            "model/sentence_bert_config.json: transformer_task must be sequence-classification (is "
            "\"text-generation\")");
  model.change(file, "prompts", {{"query", "a "}});
  EXPECT_EQ(model.error_with(file, "default_prompt_name", "query"),
            "model/config_sentence_transformers.json: default_prompt_name must be empty in a cross-encoder (is "
            "\"query\")");
  json modules = json::parse(testing::slurp(model.model() + "/modules.json"));
  modules.push_back(
      {{"type", "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}, {"path", "1_Log"}});
  testing::spill(model.model() + "/modules.json", modules.dump());
  EXPECT_NE(model.error().find("modules.logit_score.LogitScore"), std::string::npos);
}

TEST(DecoderEmbedders, VectorsAreThoseOfSentenceTransformers) {
  for (const char* name : {"qwen3_5", "qwen3_6", "gemma3_5", "causal_6"}) expect_vectors(name);
}

TEST(DecoderEmbedders, AreEncoderRunsWithoutAnOutputLayer) {
  const SentenceModel qwen("qwen3_6"), gemma("gemma3_5"), mistral("causal_6");
  const EncoderRun causal = load_run<EncoderRun>(qwen.import());
  EXPECT_TRUE(causal.config.is_decoder_only());
  EXPECT_EQ(causal.embedding.pooling, Pooling::last);
  EXPECT_EQ(causal.embedding.end, "<|endoftext|>");
  EXPECT_TRUE(causal.embedding.normalize);
  const EncoderRun both_sides = load_run<EncoderRun>(gemma.import());
  EXPECT_TRUE(both_sides.config.is_encoder_only());
  EXPECT_EQ(both_sides.embedding.start, "<bos>");
  EXPECT_EQ(both_sides.embedding.end, "<eos>");
  EXPECT_EQ(both_sides.config.attention.window, 3);                              // 5 / 2 + 1
  EXPECT_EQ(load_run<EncoderRun>(mistral.import()).config.attention.window, 7);  // 6 on each side, and the token itself
  EXPECT_EQ(error_of([&] { Embedder(qwen.run()).attend("a"); }),
            "attend: the run is an embedder with a decoder, expected one with an encoder");
}

TEST(DecoderEmbedders, NeedNoTokensThatStartAndEndAText) {
  const SentenceModel model("qwen3_6");
  for (const char* name : {"bos_token_id", "eos_token_id"}) model.change("config.json", name, 50256);  // of no token
  const Embedder embedder(model.import());
  EXPECT_LE(difference(embedder.embed(texts()).values, expected("qwen3_6", "vectors")), kVectorTolerance);
}

TEST(DecoderEmbedders, AnOutputLayerIsLeftOutAndNamed) {
  const SentenceModel model("qwen3_6");
  const std::string path = model.model() + "/model.safetensors";
  const Safetensors file = Safetensors::open(path);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file.names()) tensors.push_back({"model." + name, *file.find(name)});
  tensors.push_back({"lm_head.weight", *file.find("embed_tokens.weight")});
  write_safetensors(model.model() + "/whole", tensors);
  std::filesystem::rename(model.model() + "/whole", path);
  const ImportReport report = import_model(model.model(), model.run());
  EXPECT_EQ(report.notes, (std::vector<std::string>{"left out: lm_head (not needed for hidden states)"}));
  EXPECT_LE(difference(Embedder(model.run()).embed(texts()).values, expected("qwen3_6", "vectors")), kVectorTolerance);
}

TEST(DecoderEmbedders, WithoutModulesAreLanguageModelsUnlessTheySeeBothSides) {
  const SentenceModel qwen("qwen3_5"), mistral("causal_6");
  for (const SentenceModel* model : {&qwen, &mistral}) std::filesystem::remove(model->model() + "/modules.json");
  qwen.change("config.json", "eos_token_id", 257);
  EXPECT_EQ((import_model(qwen.model(), qwen.run()), read_config(RunDirectory(qwen.run())).kind),
            RunKind::language_model);
  EXPECT_EQ((import_model(mistral.model(), mistral.run()), read_config(RunDirectory(mistral.run())).kind),
            RunKind::encoder);
  EXPECT_EQ(load_run<EncoderRun>(mistral.run()).embedding.pooling, Pooling::mean);
}

TEST(RotaryBert, VectorsAreThoseOfSentenceTransformers) {
  for (const char* name : {"nomic_6", "gte_6"}) expect_vectors(name);
}

TEST(RotaryBert, TheFieldsOfTheOriginalCodeAreRead) {
  const SentenceModel model("nomic_6");
  json config = {{"model_type", "nomic_bert"},
                 {"n_embd", 16},
                 {"n_layer", 2},
                 {"n_head", 4},
                 {"n_inner", 24},
                 {"n_positions", 8192},
                 {"vocab_size", 81},
                 {"rotary_emb_base", 1000},
                 {"layer_norm_epsilon", 1e-12},
                 {"max_trained_positions", 32},
                 {"activation_function", "swiglu"}};
  testing::spill(model.model() + "/config.json", config.dump());
  const Embedder embedder(model.import());
  EXPECT_LE(difference(embedder.embed(texts()).values, expected("nomic_6", "vectors")), kVectorTolerance);
  EXPECT_EQ(load_run<EncoderRun>(model.run()).config.max_length, 32);
  EXPECT_EQ(model.error_with("config.json", "activation_function", "geglu"),
            "model/config.json: activation_function must be swiglu (is \"geglu\")");
  EXPECT_EQ(model.error_with("config.json", "prenorm", true), "model/config.json: prenorm must be false (is true)");
  EXPECT_EQ(model.error_with("config.json", "num_experts", 8), "model/config.json: num_experts must be 0 (is 8)");
}

TEST(RotaryBert, ScalingByLengthIsRefused) {
  const SentenceModel model("gte_6");
  EXPECT_EQ(model.error_with("config.json", "rope_scaling", {{"type", "ntk"}, {"factor", 2.0}}),
            "model/config.json: rope_type must be default, linear, llama3 or yarn (is \"ntk\")");
}

}  // namespace
}  // namespace qkv
