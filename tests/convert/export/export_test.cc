// Exports are read back as the same model; what no class can express is refused by name.
#include "qkv/export.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "convert/config_fields.h"
#include "core/fields.h"
#include "core/float16.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "io/weights/weights.h"
#include "qkv/bfloat16.h"
#include "qkv/import.h"
#include "qkv/runs.h"
#include "qkv/translator.h"
#include "tests/decode/random_run.h"
#include "tests/support/decoder_cases.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;

const std::string kShared = QKV_SHARED_DIR "/cases/";

json json_of(const std::string& path) { return json::parse(testing::slurp(path)); }

// GPT-2's shape; tokens are bytes.
ModelConfig gpt2_config() {
  ModelConfig c;
  c.encoder_layers = 0;
  c.shared_embeddings = c.scale_embeddings = false;
  c.target_vocab = 257;
  c.decoder_layers = 2;
  c.d_model = 8;
  c.attention.heads = 2;
  c.attention.key_width = c.attention.value_width = 4;
  c.ffn = 12;
  c.activation = Activation::gelu_tanh;
  c.positions = Positions::learned;
  c.norm.position = NormPosition::pre;
  c.norm.final = true;
  c.max_length = 16;
  c.dropout.residual = 0;
  return c;
}

ModelConfig llama_config() {
  ModelConfig c = gpt2_config();
  c.activation = Activation::silu;
  c.gated_ffn = true;
  c.norm.kind = NormKind::rms;
  c.ffn_bias = c.attention.input_bias = c.attention.output_bias = false;
  c.positions = Positions::rotary;
  c.attention.key_value_heads = 1;
  return c;
}

class Export : public ::testing::Test {
 protected:
  std::string run() const { return directory_ / "run"; }
  std::string out() const { return directory_ / "out"; }

  // A language model of bytes with random weights.
  void write_run(const ModelConfig& config) const {
    std::filesystem::remove_all(run());
    std::filesystem::remove_all(out());
    Transformer<float> model(config);
    testing::randomize(model.parameters(), 1);
    create_run(RunDirectory(run()), LanguageRun{config, {.unit = TextUnit::bytes}, {}},
               [&](const RunDirectory& partial) {
                 save_weights(partial.model(), model.parameters(), model.parameters().values());
               });
  }
  ExportReport exported(const ModelConfig& config) const {
    write_run(config);
    return export_model(run(), out());
  }
  std::string error_for(const std::function<void(ModelConfig&)>& change, ModelConfig config = gpt2_config()) const {
    change(config);
    write_run(config);
    const std::string text = error_of([&] { export_model(run(), out()); });
    EXPECT_FALSE(std::filesystem::exists(out()) || std::filesystem::exists(out() + ".partial"));
    return text.substr(std::min(text.size(), run().size() + 1));
  }

  TempDir directory_;
};

TEST_F(Export, EveryTensorHasTheNumbersOfItsParameters) {
  const ExportReport report = exported(gpt2_config());
  EXPECT_EQ(report.model_type, "gpt2");
  EXPECT_EQ(report.parameters, count_parameters(gpt2_config()));
  const Safetensors ours = Safetensors::open(run() + "/model.safetensors"),
                    theirs = Safetensors::open(out() + "/model.safetensors");
  EXPECT_EQ(theirs.metadata().at("format"), "pt");
  std::vector<float> q(64), v_bias(8), fused(192), fused_bias(24);
  ours.read("decoder.layers.1.self_attention.k.weight", {8, 8}, q);
  ours.read("decoder.layers.1.self_attention.v.bias", {8}, v_bias);
  theirs.read("transformer.h.1.attn.c_attn.weight", {8, 24}, fused);
  theirs.read("transformer.h.1.attn.c_attn.bias", {24}, fused_bias);
  for (size_t out = 0; out < 8; out++) {
    EXPECT_EQ(fused_bias[16 + out], v_bias[out]);
    for (size_t in = 0; in < 8; in++) EXPECT_EQ(fused[in * 24 + 8 + out], q[out * 8 + in]);
  }
  const json config = json_of(out() + "/config.json"), generation = json_of(out() + "/generation_config.json");
  EXPECT_EQ(config["architectures"], json({"GPT2LMHeadModel"}));
  EXPECT_EQ(config["n_inner"], 12);
  EXPECT_EQ(config["bos_token_id"], 256);
  EXPECT_EQ(generation["eos_token_id"], 256);
  const json tokenizer = json_of(out() + "/tokenizer.json");
  EXPECT_EQ(tokenizer["model"]["vocab"].size(), 256u);
  EXPECT_EQ(tokenizer["model"]["vocab"]["\u0120"], 32);
  EXPECT_EQ(tokenizer["model"]["vocab"]["~"], 126);
  EXPECT_EQ(tokenizer["added_tokens"][0]["id"], 256);
}

TEST_F(Export, TheClassIsTheOneThatFits) {
  const auto type = [&](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = llama_config();
    change(config);
    return exported(config).model_type;
  };
  EXPECT_EQ(type([](auto&) {}), "llama");
  EXPECT_EQ(type([](auto& c) { c.ffn_bias = c.attention.input_bias = c.attention.output_bias = true; }), "llama");
  EXPECT_EQ(type([](auto& c) { c.rotary.scaling = RotaryScaling::llama3, c.rotary.scale = 8; }), "llama");
  EXPECT_EQ(json_of(out() + "/config.json")["rope_scaling"]["rope_type"], "llama3");
  EXPECT_EQ(type([](auto& c) { c.attention.window = 5; }), "mistral");
  EXPECT_EQ(type([](auto& c) { c.attention.input_bias = true; }), "qwen2");
  EXPECT_EQ(type([](auto& c) { c.attention.input_bias = true, c.attention.window = 5; }), "qwen2");
  EXPECT_EQ(
      type([](auto& c) { c.attention.query_key_norm = true, c.attention.key_width = c.attention.value_width = 6; }),
      "qwen3");
}

TEST_F(Export, PartsThatTheModelLacksHaveNoEffect) {
  ModelConfig config = gpt2_config();
  config.norm.kind = NormKind::layer_no_bias;
  config.ffn_bias = config.attention.input_bias = config.attention.output_bias = false;
  config.positions = Positions::halves;
  config.scale_embeddings = true;
  EXPECT_EQ(exported(config).model_type, "gpt2");
  EXPECT_EQ(json_of(out() + "/config.json")["tie_word_embeddings"], false);
  const Safetensors ours = Safetensors::open(run() + "/model.safetensors"),
                    theirs = Safetensors::open(out() + "/model.safetensors");
  std::vector<float> table(257 * 8), scaled(257 * 8), output(257 * 8), positions(16 * 8), bias(12);
  ours.read("target_embedding.weight", {257, 8}, table);
  theirs.read("transformer.wte.weight", {257, 8}, scaled);
  theirs.read("lm_head.weight", {257, 8}, output);
  theirs.read("transformer.wpe.weight", {16, 8}, positions);
  theirs.read("transformer.h.0.mlp.c_fc.bias", {12}, bias);
  EXPECT_EQ(output, table);
  for (size_t i = 0; i < table.size(); i++) EXPECT_EQ(scaled[i], table[i] * std::sqrt(8.0f));
  EXPECT_EQ(bias, std::vector<float>(12));
  EXPECT_EQ(positions[8], std::sin(1.0f));
  EXPECT_EQ(positions[12], std::cos(1.0f));
}

TEST_F(Export, ActivationsThatTransformersLacksAreNamed) {
  const std::span<const ActivationName> all = activations_of_transformers();
  for (size_t i = 0; i < names_of(Activation{}).size(); i++)
    EXPECT_FALSE(name_of_activation(static_cast<Activation>(i), all, "config.json").empty());
  EXPECT_EQ(error_of([&] { name_of_activation(Activation::gelu_tanh, all.first(4), "config.json"); }),
            "config.json: activation must be one of relu, gelu, silu for transformers (is gelu_tanh)");
}

TEST_F(Export, PartsThatNoClassHasAreNamed) {
  EXPECT_EQ(error_for([](auto& c) { c.norm.position = NormPosition::query; }),
            "config.json: norm_position must be pre for the nearest class, gpt2 (is query)");
  EXPECT_EQ(error_for([](auto& c) { c.output_bias = true; }),
            "config.json: output_bias must be false for the nearest class, gpt2 (is true)");
  EXPECT_EQ(error_for([](auto& c) { c.positions = Positions::alibi; }),
            "config.json: positions must be learned for the nearest class, gpt2 (is alibi)");
  EXPECT_EQ(error_for([](auto& c) { c.attention.scale = 1; }, llama_config()),
            "config.json: attention_scale must be 0 for the nearest class, llama (is 1)");
  EXPECT_EQ(error_for([](auto& c) { c.attention.softcap = 30; }, llama_config()),
            "config.json: softcap must be 0 for the nearest class, llama (is 30)");
  EXPECT_EQ(error_for([](auto& c) { c.attention.window = 5, c.ffn_bias = true; }, llama_config()),
            "config.json: window must be 0 for the nearest class, llama (is 5)");
  EXPECT_EQ(error_for([](auto& c) { c.rotary.factor = 2; }, llama_config()),
            "config.json: rotary_factor must be 1 for the nearest class, llama (is 2)");
  EXPECT_EQ(error_for([](auto& c) { c.attention.value_width = 6; }, llama_config()),
            "config.json: value_width must be 4 for the nearest class, llama (is 6)");
}

// They alone have settings for summaries, which exports do not contain.
TEST_F(Export, ModelsOfWholeTextsAreRefused) {
  for (const auto& [name, error] : std::map<std::string, std::string>{
           {"bart", "embedding_norm must be false for the nearest class, marian (is true)"},
           {"pegasus", "norm_position must be post for the nearest class, marian (is pre)"},
           {"t5", "key_width must be 10 for the nearest class, marian (is 6)"}}) {
    import_model(QKV_GOLDEN_DIR "/encoder_decoders/" + name, directory_ / name);
    EXPECT_EQ(error_of([&] { export_model(directory_ / name, out()); }),
              directory_ / (name + "/config.json: " + error));
  }
}

TEST_F(Export, RunsIn8BitsAreRefused) {
  write_run(gpt2_config());
  quantize_run(run(), directory_ / "small");
  EXPECT_EQ(
      error_of([&] { export_model(directory_ / "small", out()); }),
      directory_ / "small/model.safetensors: must be float32 (is quantized): export the run that it was made from");
  EXPECT_FALSE(std::filesystem::exists(out()));
  export_model(run(), out());
  EXPECT_EQ(error_of([&] { export_model(run(), out()); }), out() + ": already exists");
}

TEST_F(Export, WeightsAreRoundedToTheRequestedType) {
  write_run(gpt2_config());
  const Safetensors ours = Safetensors::open(run() + "/model.safetensors");
  std::vector<float> wanted(8);
  ours.read("decoder.norm.weight", {8}, wanted);
  export_model(run(), out(), ExportType::bfloat16);
  std::vector<bfloat16> rounded(8);
  Safetensors::open(out() + "/model.safetensors")
      .read("transformer.ln_f.weight", DType::bf16, {8}, std::as_writable_bytes(std::span(rounded)));
  for (size_t i = 0; i < 8; i++) EXPECT_EQ(rounded[i].bits, bfloat16(wanted[i]).bits);
  std::filesystem::remove_all(out());
  export_model(run(), out(), ExportType::float16);
  std::vector<float16> half(8);
  Safetensors::open(out() + "/model.safetensors")
      .read("transformer.ln_f.weight", DType::f16, {8}, std::as_writable_bytes(std::span(half)));
  for (size_t i = 0; i < 8; i++) EXPECT_NEAR(half[i], wanted[i], std::abs(wanted[i]) * 0x1p-11f);
}

TEST(Float16Export, RoundsToNearestAndBack) {
  for (uint32_t bits = 0; bits < 0x7C00; bits++) {
    const float16 x{[&] {
      float16 y;
      y.bits = static_cast<uint16_t>(bits);
      return static_cast<float>(y);
    }()};
    ASSERT_EQ(x.bits, bits);
    if (bits + 1 == 0x7C00) break;
    float16 next;
    next.bits = static_cast<uint16_t>(bits + 1);
    const float middle = (static_cast<float>(x) + static_cast<float>(next)) / 2;
    ASSERT_EQ(float16(middle).bits, bits + (bits & 1)) << bits;  // ties to even
    ASSERT_EQ(float16(std::nextafter(middle, 1e9f)).bits, bits + 1) << bits;
  }
  EXPECT_EQ(float16(-1.5f).bits, 0xBE00);
  EXPECT_TRUE(std::isinf(static_cast<float>(float16(65520.0f))));
  EXPECT_EQ(static_cast<float>(float16(65519.0f)), 65504);
}

// Tensors of the same names, types and bytes.
void expect_same_tensors(const std::string& found, const std::string& wanted) {
  const Safetensors a = Safetensors::open(found + "/model.safetensors"),
                    b = Safetensors::open(wanted + "/model.safetensors");
  EXPECT_EQ(a.names().size(), b.names().size());
  for (const std::string& name : b.names()) {
    const TensorView *x = a.find(name), *y = b.find(name);
    ASSERT_TRUE(x) << name;
    EXPECT_EQ(x->shape, y->shape) << name;
    EXPECT_TRUE(x->dtype == y->dtype && std::ranges::equal(x->data, y->data)) << name;
  }
}

// A model of another project, imported and exported.
class RoundTrip : public Export {
 protected:
  void go(const std::string& source) const {
    import_model(source, run());
    export_model(run(), out());
    import_model(out(), directory_ / "again");
    EXPECT_EQ(testing::slurp(directory_ / "again/model.safetensors"), testing::slurp(run() + "/model.safetensors"));
    for (const auto& entry : std::filesystem::directory_iterator(run()))
      EXPECT_EQ(testing::slurp(entry.path()),
                testing::slurp(directory_ / ("again/" + entry.path().filename().string())))
          << entry.path();
  }
};

// A translator of one vocabulary whose translations start from <s>.
class TranslatorExport : public Export {
 protected:
  void SetUp() override {
    const Tokenizer tokenizer = Tokenizer::train(testing::kText, {TokenizerKind::bpe, 60});
    ModelConfig config;
    config.source_vocab = config.target_vocab = tokenizer.size();
    config.encoder_layers = config.decoder_layers = 1;
    config.d_model = config.ffn = 16;
    config.attention.heads = 2;
    config.attention.key_width = config.attention.value_width = 8;
    config.max_length = 30;
    Transformer<float> model(config);
    testing::randomize(model.parameters(), 1);
    const TokenizerPair both{tokenizer, tokenizer};
    create_run(RunDirectory(run()), TranslatorRun{config, both, trained_translation(both, false)},
               [&](const RunDirectory& partial) {
                 save_weights(partial.model(), model.parameters(), model.parameters().values());
               });
    export_model(run(), out());
  }
  static std::vector<float> tensor(const std::string& directory, const std::string& name, std::vector<int64_t> shape) {
    int64_t size = 1;
    for (const int64_t n : shape) size *= n;
    std::vector<float> values(to_size(size));
    Safetensors::open(directory + "/model.safetensors").read(name, shape, values);
    return values;
  }
};

// CTranslate2 removes the last row of each table if the last token is <pad>, and starts from a zero vector.
TEST_F(TranslatorExport, StartsFromAPaddingTokenBehindTheVocabulary) {
  const TranslatorRun ours = load_run<TranslatorRun>(run());
  const int64_t V = ours.config.target_vocab, d = ours.config.d_model, length = ours.config.max_length;
  const json config = json_of(out() + "/config.json"), vocabulary = json_of(out() + "/vocab.json"),
             generation = json_of(out() + "/generation_config.json");
  EXPECT_EQ(config["vocab_size"], V + 1);
  EXPECT_EQ(vocabulary.size(), to_size(V + 1));
  EXPECT_EQ(vocabulary["<pad>"], V);
  for (const char* name : {"pad_token_id", "decoder_start_token_id"}) EXPECT_EQ(config[name], V) << name;
  EXPECT_EQ(json_of(out() + "/tokenizer_config.json")["pad_token"], "<pad>");
  EXPECT_NE(std::ranges::find(generation["bad_words_ids"], json({V})), generation["bad_words_ids"].end());

  const std::vector<float> table = tensor(out(), "model.shared.weight", {V + 1, d});
  const std::vector<float> own = tensor(run(), "embedding.weight", {V, d});
  EXPECT_TRUE(std::equal(own.begin(), own.end(), table.begin()));
  for (int64_t i = 0; i < d; i++) EXPECT_EQ(table[to_size(V * d + i)], 0);
  EXPECT_LE(tensor(out(), "final_logits_bias", {1, V + 1}).back(), -1e4F);
  const std::vector<float> source = tensor(out(), "model.encoder.embed_positions.weight", {length, d}),
                           target = tensor(out(), "model.decoder.embed_positions.weight", {length, d});
  const float scale = ours.config.scale_embeddings ? std::sqrt(static_cast<float>(d)) : 1;
  for (int64_t i = 0; i < d; i++)
    EXPECT_EQ(target[to_size(i)], source[to_size(i)] + scale * own[to_size(ours.tokens.start * d + i)]);
  EXPECT_TRUE(std::equal(source.begin() + d, source.end(), target.begin() + d));
}

TEST_F(TranslatorExport, IsReadBackWithTheSameTranslationsAndScores) {
  import_model(out(), directory_ / "again");
  const Translator ours(run()), again(directory_ / "again");
  const TranslateOptions options = [] {
    TranslateOptions o;
    o.beam = o.n_best = 3;
    o.max_length = 12;
    return o;
  }();
  const std::vector<Translation> wanted = ours.translate(testing::kText, options),
                                 found = again.translate(testing::kText, options);
  for (size_t i = 0; i < wanted.size(); i++)
    for (size_t k = 0; k < wanted[i].hypotheses.size(); k++) {
      EXPECT_EQ(found[i].hypotheses[k].text, wanted[i].hypotheses[k].text);
      EXPECT_NEAR(found[i].hypotheses[k].score, wanted[i].hypotheses[k].score, 1e-5);
    }
  // The run that was read back starts from <pad>, and is written as it is.
  export_model(directory_ / "again", directory_ / "twice");
  expect_same_tensors(directory_ / "twice", out());
  EXPECT_EQ(json_of(directory_ / "twice/vocab.json"), json_of(out() + "/vocab.json"));
}

TEST_F(TranslatorExport, KeepsTheDefaultsOfTheRun) {
  testing::spill(run() + "/decoding.json",
                 R"({"beam": 3, "length_penalty": 0.5, "max_length": 20, "no_repeat_ngram": 3, "min_length": 2,
                     "early_stopping": "never"})");
  std::filesystem::remove_all(out());
  export_model(run(), out());
  EXPECT_EQ(json_of(out() + "/generation_config.json")["num_beams"], 3);
  EXPECT_EQ(import_model(out(), directory_ / "again").notes, std::vector<std::string>());
  EXPECT_EQ(read_decoding_defaults(RunDirectory(directory_ / "again")), read_decoding_defaults(RunDirectory(run())));
}

class DecoderRoundTrip : public RoundTrip, public ::testing::WithParamInterface<const char*> {};

TEST_P(DecoderRoundTrip, PreservesTensorsAndClass) {
  const std::string source = directory_ / "source";
  testing::copy_decoder_case(GetParam(), source);
  go(source);
  // The vision model of gemma3 is left out, so that it is written as gemma3_text. OPT is written as GPT-2.
  if (GetParam() == std::string("gemma3") || GetParam() == std::string("opt")) return;
  const json theirs = json_of(source + "/config.json"), ours = json_of(out() + "/config.json");
  EXPECT_EQ(ours["model_type"], theirs["model_type"]);
  EXPECT_EQ(ours["architectures"], theirs["architectures"]);
  expect_same_tensors(out(), source);
}

INSTANTIATE_TEST_SUITE_P(Of, DecoderRoundTrip, ::testing::ValuesIn(testing::kDecoderCases),
                         [](const auto& model) { return std::string(model.param); });

// The models of ../shared.
class SharedRoundTrip : public RoundTrip {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "skipped: ../shared not present";
  }
};

TEST_F(SharedRoundTrip, PreservesTheTensorsOfALlama) {
  go(kShared + "stories260K");
  expect_same_tensors(out(), kShared + "stories260K");
  const json theirs = json_of(kShared + "stories260K/config.json"), ours = json_of(out() + "/config.json");
  for (const char* name : {"hidden_size", "intermediate_size", "num_key_value_heads", "rms_norm_eps", "rope_theta"})
    EXPECT_EQ(ours[name], theirs[name]) << name;
  EXPECT_EQ(testing::slurp(out() + "/tokenizer.model"), testing::slurp(kShared + "stories260K/tokenizer.model"));
  EXPECT_EQ(json_of(out() + "/generation_config.json")["eos_token_id"], json({1, 2}));
}

TEST_F(SharedRoundTrip, PreservesTheTensorsOfAMarianModel) {
  go(kShared + "marian");
  expect_same_tensors(out(), kShared + "marian");
  EXPECT_EQ(json_of(out() + "/vocab.json"), json_of(kShared + "marian/vocab.json"));
  EXPECT_EQ(testing::slurp(out() + "/source.spm"), testing::slurp(kShared + "marian/source.spm"));
}

}  // namespace
}  // namespace qkv
