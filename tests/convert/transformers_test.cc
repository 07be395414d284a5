// Decoder-only models of transformers: their logits, and the ids that they generate. tests/golden/transformers/make.py
// writes them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "convert/architecture.h"
#include "decode/generation/generation.h"
#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "qkv/import.h"
#include "tests/support/decoder_cases.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;

template <class T>
std::vector<T> values_of(const Safetensors& file, const std::string& name) {
  const TensorView& tensor = *file.find(name);
  std::vector<T> values(tensor.data.size() / sizeof(T));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

class Transformers : public ::testing::Test {
 protected:
  void take(const std::string& name) const { testing::copy_decoder_case(name, model()); }
  std::string model() const { return directory_ / "model"; }
  std::string out() const { return directory_ / "run"; }

  // The error of an import with a changed member of config.json, without the folder of the test.
  std::string error_with(const std::string& name, const std::string& member, const json& value) const {
    take(name);
    json config = json::parse(testing::slurp(model() + "/config.json"));
    config[member] = value;
    testing::spill(model() + "/config.json", config.dump());
    const std::string text = error_of([&] { import_model(model(), out()); });
    EXPECT_FALSE(std::filesystem::exists(out()));
    return text.substr(std::min(text.size(), directory_.path().size() + 1));
  }

  TempDir directory_;
};

class Decoders : public Transformers, public ::testing::WithParamInterface<const char*> {
 protected:
  // The logits at every position of a text, [T, V].
  std::vector<float> logits(const Transformer<float>& transformer, const std::vector<int32_t>& ids) {
    const Arena::Scope scope(arena_);
    Context context{arena_};
    context.inference = true;
    Packed none, text;
    text.append(ids);
    Transformer<float>::Saved saved;
    transformer.forward(none, text, context, saved);
    const Matrix<float> logits = transformer.output().logits(saved.h, context);
    std::vector<float> values;
    for (int64_t n = 0; n < logits.rows; n++) values.insert(values.end(), logits.row(n), logits.row(n) + logits.cols);
    return values;
  }

  Arena arena_;
};

// The expected logits are those of float64; float32 in transformers differs by up to 1e-6 of the largest.
TEST_P(Decoders, MatchLogitsAndGreedyIdsOfTransformers) {
  take(GetParam());
  import_model(model(), out());
  const LanguageRun run = load_run<LanguageRun>(out());
  const Safetensors expected = Safetensors::open(model() + "/expected.safetensors");
  const auto ids = values_of<int32_t>(expected, "ids"), generated = values_of<int32_t>(expected, "generated");
  const std::vector<float> wanted = values_of<float>(expected, "logits"), found = logits(*run.model, ids);
  ASSERT_EQ(found.size(), wanted.size());
  float largest = 0, error = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    largest = std::max(largest, std::abs(wanted[i]));
    error = std::max(error, std::abs(wanted[i] - found[i]));
  }
  EXPECT_LE(error, 1e-5f * largest);

  GenerationOptions options;
  options.max_tokens = std::ssize(generated);
  options.temperature = 0;
  options.never = {2};
  const std::vector<int32_t> prompt(ids.begin() + 1, ids.end());
  EXPECT_EQ(generate_ids(*run.model, prompt, {ids.front(), {2}}, options, arena_).ids, generated);
}

INSTANTIATE_TEST_SUITE_P(Of, Decoders, ::testing::ValuesIn(testing::kDecoderCases),
                         [](const auto& model) { return std::string(model.param); });

TEST(DecoderCases, IncludeEveryLanguageModel) {
  std::set<std::string> cases(std::begin(testing::kDecoderCases), std::end(testing::kDecoderCases));
  for (const Architecture* a : all_architectures())
    EXPECT_TRUE(a->base.encoder_layers > 0 || cases.contains(a->model_types.front())) << a->name;
}

TEST_F(Transformers, OldFilesOfGpt2HaveNoPrefixAndHoldMasks) {
  take("gpt2");
  EXPECT_EQ(import_model(model(), out()).kind, "GPT-2");
  const std::string path = model() + "/model.safetensors";
  const Safetensors file = Safetensors::open(path);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file.names()) tensors.push_back({name.substr(name.find('.') + 1), *file.find(name)});
  const std::vector<float> mask(64 * 64), one(1);
  for (const std::string layer : {"h.0.", "h.1."}) {
    tensors.push_back({layer + "attn.bias", f32_tensor({1, 1, 64, 64}, mask)});
    tensors.push_back({layer + "attn.masked_bias", f32_tensor({}, one)});
  }
  write_safetensors(path + ".new", tensors);
  std::filesystem::rename(path + ".new", path);
  import_model(model(), directory_ / "other");
  EXPECT_EQ(testing::slurp(out() + "/model.safetensors"), testing::slurp(directory_ / "other/model.safetensors"));
}

TEST_F(Transformers, UnsupportedFeaturesAreNamed) {
  EXPECT_EQ(error_with("gpt2", "scale_attn_weights", false),
            "model/config.json: scale_attn_weights must be true (is false)");
  EXPECT_EQ(error_with("gpt2", "scale_attn_by_inverse_layer_idx", true),
            "model/config.json: scale_attn_by_inverse_layer_idx must be false (is true)");
  EXPECT_EQ(error_with("gpt2", "add_cross_attention", true),
            "model/config.json: add_cross_attention must be false (is true)");
  EXPECT_EQ(error_with("gpt2", "n_head", 3),
            "model/config.json: n_head must divide n_embd (n_head is 3, n_embd is 16)");
  EXPECT_EQ(error_with("gpt2", "n_layer", int64_t{1} << 60),
            "model/config.json: n_layer must be at most 1000 (is 1152921504606846976)");
  EXPECT_EQ(error_with("gpt2", "n_inner", 32),
            "model/model.safetensors: the configuration has 6016 parameters (the file has 8128 numbers for them)");
  EXPECT_EQ(error_with("llama3", "rope_parameters", {{"rope_type", "longrope"}}),
            "model/config.json: rope_type must be default, linear, llama3 or yarn (is \"longrope\")");
  EXPECT_EQ(error_with("llama3", "rope_parameters", {{"rope_type", "llama3"}}), "model/config.json: factor is missing");
  EXPECT_EQ(error_with("llama3", "rope_parameters", {{"partial_rotary_factor", 0.5}}),
            "model/config.json: partial_rotary_factor must be 1 (is 0.5)");
  const std::string share =
      "model/config.json: partial_rotary_factor must be at most 1, and turn an even number of the 8 components of a "
      "head ";
  EXPECT_EQ(error_with("phi", "rope_parameters", {{"partial_rotary_factor", 2}}), share + "(is 2)");
  EXPECT_EQ(error_with("gpt_neox", "rope_parameters", {{"partial_rotary_factor", 0.4}}), share + "(is 0.4)");
  EXPECT_EQ(
      error_with("gpt_neox", "num_attention_heads", 3),
      "model/config.json: num_attention_heads must divide hidden_size (num_attention_heads is 3, hidden_size is 16)");
  EXPECT_EQ(error_with("qwen3", "rope_parameters", {{"rope_type", "yarn"}, {"factor", 2}, {"truncate", false}}),
            "model/config.json: truncate must be true (is false)");
}

TEST_F(Transformers, WindowsFollowFromTheFirstLayerThatHasOneUnlessLayersAreListed) {
  take("qwen2");
  json config = json::parse(testing::slurp(model() + "/config.json"));
  config["use_sliding_window"] = true, config["sliding_window"] = 5;
  const auto import_with = [&](int64_t first) {
    config["max_window_layers"] = first;
    testing::spill(model() + "/config.json", config.dump());
    std::filesystem::remove_all(out());
    const AttentionConfig attention = import_model(model(), out()).config.attention;
    return std::pair(attention.window, attention.layer_pattern);
  };
  EXPECT_EQ(import_with(0), std::pair(int64_t{0}, std::string()));  // layer_types has no window
  config.erase("layer_types");
  EXPECT_EQ(import_with(0), std::pair(int64_t{5}, std::string()));
  EXPECT_EQ(import_with(1), std::pair(int64_t{5}, std::string("gl")));
  EXPECT_EQ(import_with(2), std::pair(int64_t{0}, std::string()));
}

TEST_F(Transformers, LayersThatDifferBecomeTheShortestPattern) {
  const auto pattern = [&](const std::string& name) {
    take(name);
    std::filesystem::remove_all(out());
    return import_model(model(), out()).config.attention.layer_pattern;
  };
  EXPECT_EQ(pattern("gemma2"), "lg");
  EXPECT_EQ(pattern("gemma3_text"), "llg");
  EXPECT_EQ(pattern("gemma3"), "l");
  EXPECT_EQ(pattern("smollm3"), "gggn");
  EXPECT_EQ(pattern("qwen2_layers"), "gll");
}

// Phi-3 has 32,000 pieces, tokens behind them in tokenizer_config.json, and more rows of embeddings.
TEST_F(Transformers, TokensBehindThePiecesOfSentencePieceAreEnds) {
  take("phi3");
  std::string pieces;
  for (int i = 3; i < 28; i++) pieces += testing::spm::piece("p" + std::to_string(i));
  testing::spill(model() + "/tokenizer.model", testing::spm::with_pieces(pieces));
  testing::spill(model() + "/tokenizer_config.json",
                 R"({"added_tokens_decoder": {"28": {"content": "<|end|>", "special": true},
                                              "30": {"content": "p5", "special": true}}})");
  testing::spill(model() + "/generation_config.json", R"({"eos_token_id": [2, 28]})");
  import_model(model(), out());
  const LanguageRun run = load_run<LanguageRun>(out());
  EXPECT_EQ(run.language.ends, (std::vector<std::string>{"</s>", "<|end|>"}));
  EXPECT_EQ(run.codec.size(), 32);
  EXPECT_EQ(run.codec.piece(29), "<unused_29>");
  EXPECT_EQ(run.codec.piece(30), "<unused_30>");  // a piece has the spelling of the token
  EXPECT_EQ(run.codec.decode(std::vector<int32_t>{5, 28, 31, 6}), "p5p6");
}

TEST_F(Transformers, TheVisionModelOfGemma3IsLeftOut) {
  take("gemma3");
  EXPECT_EQ(import_model(model(), out()).notes,
            (std::vector<std::string>{"left out: multi_modal_projector, vision_tower (not needed for hidden states)"}));
}

TEST_F(Transformers, UnsupportedFeaturesOfOptAreNamed) {
  EXPECT_EQ(error_with("opt", "do_layer_norm_before", false),
            "model/config.json: do_layer_norm_before must be true (is false)");
  EXPECT_EQ(error_with("opt", "layer_norm_elementwise_affine", false),
            "model/config.json: layer_norm_elementwise_affine must be true (is false)");
  EXPECT_EQ(error_with("opt", "_remove_final_layer_norm", true),
            "model/config.json: _remove_final_layer_norm must be false (is true)");
  EXPECT_EQ(error_with("opt", "word_embed_proj_dim", 8),
            "model/config.json: word_embed_proj_dim must be hidden_size, 16 (is 8)");
}

TEST_F(Transformers, UnsupportedLayersAreNamed) {
  EXPECT_EQ(error_with("gemma2", "layer_types", {"sliding_attention"}),
            "model/config.json: layer_types must be a list of 3 layers");
  EXPECT_EQ(
      error_with("gemma2", "layer_types", {"sliding_attention", "chunked_attention", "full_attention"}),
      "model/config.json: layer_types must be full_attention or sliding_attention (is \"\\\"chunked_attention\\\"\")");
  EXPECT_EQ(error_with("gemma2", "query_pre_attn_scalar", 0),
            "model/config.json: query_pre_attn_scalar must be above 0 (is 0)");
  EXPECT_EQ(error_with("gemma2", "use_bidirectional_attention", true),
            "model/config.json: use_bidirectional_attention must be false (is true)");
  EXPECT_EQ(
      error_with("gemma3_text", "rope_parameters", {{"sliding_attention", {{"rope_type", "linear"}, {"factor", 2}}}}),
      "model/config.json: rope_type of sliding_attention must be default (is \"linear\")");
  EXPECT_EQ(error_with("gemma3", "text_config", 3), "model/config.json: text_config must be an object");
  EXPECT_EQ(error_with("smollm3", "no_rope_layers", {1, 1, 1, 0}),
            "model/config.json: no_rope_layers must be a list of 5 layers");
  EXPECT_EQ(error_with("smollm3", "no_rope_layers", {1, 1, 1, 0, 2}),
            "model/config.json: no_rope_layers must be 0 or 1 (is \"2\")");
  EXPECT_EQ(error_with("smollm3", "use_sliding_window", true),
            "model/config.json: use_sliding_window must be false (is true)");
  EXPECT_EQ(error_with("phi3", "rope_parameters", {{"rope_type", "longrope"}}),
            "model/config.json: rope_type must be default in Phi-3 (is \"longrope\")");
  EXPECT_EQ(error_with("phi3", "rope_scaling", {{"type", "su"}}),
            "model/config.json: rope_type must be default in Phi-3 (is \"su\")");
  EXPECT_EQ(error_with("phi3", "num_key_value_heads", 3),
            "model/config.json: num_key_value_heads must divide num_attention_heads (4) (is 3)");
  EXPECT_EQ(
      error_with("phi3", "num_key_value_heads", 1),
      "model/model.safetensors: tensor \"model.layers.0.self_attn.qkv_proj.weight\": must have 16 + 4 + 4 rows (is "
      "F32 [32, 16])");
}

}  // namespace
}  // namespace qkv
