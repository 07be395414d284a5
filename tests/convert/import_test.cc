// Imports of small models: every kind of source preserves its parameters, and every problem is one error.
#include "qkv/import.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/to_size.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "qkv/runs.h"
#include "qkv/translator.h"
#include "tests/support/errors.h"
#include "tests/support/foreign_models.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::CTranslate2Writer;
using testing::error_if_any;
using testing::foreign_config;
using testing::ForeignModel;
using testing::spill;
using testing::TempDir;

const std::vector<std::string> kPieces = {"</s>", "<unk>", "a", "b", "c", ">>de<<", "<pad>"};

std::unique_ptr<Transformer<float>> random_model(const ModelConfig& config) {
  auto model = std::make_unique<Transformer<float>>(config);
  testing::randomize(model->parameters(), 1);
  return model;
}

// Expects equal parameters, within `tolerance` of the largest number of each.
void expect_parameters(const Transformer<float>& found, const Transformer<float>& wanted, double tolerance) {
  ASSERT_EQ(found.parameters().size(), wanted.parameters().size());
  for (const auto& p : wanted.parameters().all()) {
    const float* values = testing::values_of(found.parameters(), p.name);
    double most = 0, error = 0;
    for (int64_t i = 0; i < p.size(); i++) {
      most = std::max(most, static_cast<double>(std::abs(p.value[i])));
      error = std::max(error, std::abs(static_cast<double>(p.value[i]) - static_cast<double>(values[i])));
    }
    EXPECT_LE(error, tolerance * most) << p.name;
  }
}

class ImportTest : public ::testing::Test {
 protected:
  std::string out() const { return directory / "run"; }
  std::string source() const { return directory / "model"; }
  // The error of an import, without the folder of the test.
  std::string error(const std::string& from, const ImportOptions& options = {}) const {
    std::string text = error_if_any([&] { import_model(from, out(), options); });
    EXPECT_EQ(std::filesystem::exists(out()), text.empty());
    EXPECT_FALSE(std::filesystem::exists(out() + ".partial"));
    EXPECT_EQ(text.find('\n'), text.npos);
    std::filesystem::remove_all(out());
    const size_t place = text.find(directory.path() + "/");
    return place == text.npos ? text : text.erase(place, directory.path().size() + 1);
  }

  TempDir directory;
};

// A MarianMT directory without tokenizers.
class ImportMarian : public ImportTest {
 protected:
  ImportMarian() : model(random_model(foreign_config())), tensors(testing::as_marian(*model)) {
    options.tokens = true;
    config = {{"model_type", "marian"},
              {"vocab_size", 7},
              {"encoder_layers", 2},
              {"decoder_layers", 1},
              {"d_model", 8},
              {"encoder_attention_heads", 2},
              {"decoder_attention_heads", 2},
              {"encoder_ffn_dim", 12},
              {"decoder_ffn_dim", 12},
              {"activation_function", "swish"},
              {"scale_embedding", true},
              {"max_position_embeddings", 32},
              {"pad_token_id", 6},
              {"decoder_start_token_id", 6},
              {"eos_token_id", 0}};
    for (size_t i = 0; i < kPieces.size(); i++) vocabulary[kPieces[i]] = i;
  }

  void write() const {
    std::filesystem::create_directory(source());
    testing::write_foreign(source() + "/model.safetensors", tensors);
    spill(source() + "/config.json", config.dump());
    spill(source() + "/generation_config.json", R"({"bad_words_ids": [[6]]})");
    spill(source() + "/vocab.json", vocabulary.dump());
  }
  std::string error_of_changed(const std::function<void()>& change) {
    const json kept_config = config, kept_vocabulary = vocabulary;
    const ForeignModel kept = tensors;
    change();
    write();
    config = kept_config, vocabulary = kept_vocabulary, tensors = kept;
    return error(source(), options);
  }
  testing::ForeignTensor& tensor(const std::string& name) {
    return *std::ranges::find(tensors, name, &testing::ForeignTensor::name);
  }

  std::unique_ptr<Transformer<float>> model;
  ForeignModel tensors;
  json config, vocabulary;
  ImportOptions options;
};

TEST_F(ImportMarian, PreservesParametersAndTokens) {
  write();
  const ImportReport report = import_model(source(), out(), options);
  EXPECT_EQ(report.kind, "MarianMT");
  EXPECT_EQ(report.parameters, model->parameters().size());
  const TranslatorRun run = load_run<TranslatorRun>(out());
  EXPECT_EQ(run.model->config(), model->config());
  expect_parameters(*run.model, *model, 0);
  EXPECT_EQ(run.tokens.start, 6);
  EXPECT_EQ(run.tokens.end, 0);
  EXPECT_EQ(run.tokens.unknown, 1);
  EXPECT_EQ(run.tokens.never, std::vector<int32_t>{6});
  EXPECT_EQ(run.tokens.source_after, std::vector<int32_t>{0});
  EXPECT_TRUE(run.tokens.source_before.empty());
  EXPECT_EQ(run.tokenizers.source.encode(">>de<< a  c x"), (std::vector<int32_t>{5, 2, 4, 1}));
}

TEST_F(ImportMarian, TheRunTranslatesAttendsAndIsInspected) {
  write();
  import_model(source(), out(), options);
  const Translator translator(out());
  EXPECT_EQ(translator.translate({"a b c", ""}).size(), 2u);
  const AttentionMap map = translator.attend("a b", "c");
  EXPECT_EQ(map.kinds[2].rows, (std::vector<std::string>{"c", "</s>"}));
  EXPECT_EQ(map.kinds[2].columns, (std::vector<std::string>{"a", "b", "</s>"}));
  const RunInfo info = inspect(out());
  EXPECT_EQ(info.parameter_count, model->parameters().size());
  EXPECT_EQ(info.training_bytes, 0);
}

// OPUS-MT conversions hold one; an Argos Translate package does too.
TEST_F(ImportMarian, AMetadataFileDoesNotMakeItAnArgosPackage) {
  write();
  spill(source() + "/metadata.json", R"({"from_code": "en", "to_code": "de"})");
  EXPECT_EQ(import_model(source(), out(), options).kind, "MarianMT");
}

TEST_F(ImportMarian, TiedTablesMayHaveAnyOfTheirNames) {
  for (const char* name :
       {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}) {
    tensors.push_back(tensors.front());
    tensors.back().name = name;
  }
  write();
  import_model(source(), out(), options);
  expect_parameters(*load_run<TranslatorRun>(out()).model, *model, 0);
  std::filesystem::remove_all(out());
  EXPECT_EQ(error_of_changed([&] { tensors.back().values[5] += 1; }),
            "model/model.safetensors: tensor \"model.decoder.embed_tokens.weight\": must equal tensor "
            "\"model.shared.weight\", another name for the same parameter");
}

TEST_F(ImportMarian, PositionTablesInTheFileAreUsed) {
  for (const char* side : {"encoder", "decoder"}) {
    const std::vector<float> values(32 * 8, side[0] == 'e' ? 0.5f : 0.25f);
    tensors.push_back({std::string("model.") + side + ".embed_positions.weight", {32, 8}, values});
  }
  write();
  EXPECT_EQ(import_model(source(), out(), options).config.positions, Positions::learned);
  EXPECT_EQ(testing::values_of(load_run<TranslatorRun>(out()).model->parameters(), "decoder.positions.weight")[255],
            0.25f);
}

TEST_F(ImportMarian, ErrorsNameTheFileAndTheTensorOrTheField) {
  const auto changed = [&](const std::function<void()>& change) { return error_of_changed(change); };
  EXPECT_EQ(changed([] {}), "");
  EXPECT_EQ(changed([&] { config["normalize_before"] = true; }),
            "model/config.json: normalize_before must be false (is true)");
  testing::expect_contains(changed([&] { config["model_type"] = "fsmt"; }),
                           "model/config.json: model_type must be one of albert, bart, bert, ");
  EXPECT_EQ(
      changed([&] { config["activation_function"] = "tanh"; }),
      "model/config.json: activation_function must be one of relu, gelu, silu, swish, gelu_new, gelu_pytorch_tanh "
      "(is \"tanh\")");
  EXPECT_EQ(changed([&] { config["decoder_ffn_dim"] = 13; }),
            "model/config.json: encoder_ffn_dim and decoder_ffn_dim must be equal (are 12 and 13)");
  EXPECT_EQ(changed([&] { config.erase("d_model"); }), "model/config.json: d_model is missing");
  EXPECT_EQ(changed([&] { config["d_model"] = "8"; }), "model/config.json: d_model must be an integer");
  EXPECT_EQ(
      changed([&] { config["encoder_attention_heads"] = config["decoder_attention_heads"] = 3; }),
      "model/config.json: encoder_attention_heads must divide d_model (encoder_attention_heads is 3, d_model is 8)");
  EXPECT_EQ(changed([&] { config["max_position_embeddings"] = 1 << 30; }),
            "model/config.json: max_position_embeddings must be at most 16384 (is 1073741824)");
  EXPECT_EQ(changed([&] { config["eos_token_id"] = 7; }),
            "model/config.json: eos_token_id must be below 7, the size of the vocabulary (is 7)");
  EXPECT_EQ(changed([&] {
              config["bad_words_ids"] = {{1, 2}};
            }),
            "model/config.json: bad_words_ids must hold arrays of one id each; sequences of tokens are not supported");
  EXPECT_EQ(changed([&] { config["encoder_layers"] = 3; }),
            "model/model.safetensors: tensor \"model.encoder.layers.2.self_attn.q_proj.weight\" is missing");
  EXPECT_EQ(changed([&] { config["encoder_layers"] = int64_t{1} << 60; }),
            "model/config.json: encoder_layers must be at most 1000 (is 1152921504606846976)");
  EXPECT_EQ(changed([&] { config["encoder_layers"] = 1; }),
            "model/model.safetensors: tensor \"model.encoder.layers.1.fc1.bias\": F32 [12] is not part of the model");
  EXPECT_EQ(changed([&] { config["d_model"] = 4, config["vocab_size"] = 14; }),
            "model/model.safetensors: tensor \"final_logits_bias\": must be F32 [1, 14] (is F32 [1, 7])");
  EXPECT_EQ(changed([&] {
              tensor("final_logits_bias").shape = {7, 1};
            }),
            "model/model.safetensors: tensor \"final_logits_bias\": must be F32 [1, 7] (is F32 [7, 1])");
  EXPECT_EQ(changed([&] { config["d_model"] = 1 << 20, config["max_position_embeddings"] = 16384; }),
            "model/model.safetensors: model: max_length * d_model must be between 1 and 8388608 (is 17179869184)");
  EXPECT_EQ(changed([&] { config["d_model"] = 1 << 14; }),
            "model/model.safetensors: the configuration has " + std::to_string([] {
              ModelConfig c = foreign_config();
              c.d_model = 1 << 14, c.attention.key_width = c.attention.value_width = 1 << 13;
              return count_parameters(c);
            }()) +
                " parameters (the file has 1963 numbers for them)");
  EXPECT_EQ(changed([&] {
              tensor("model.encoder.layers.0.fc1.weight").shape = {8, 12};
            }),
            "model/model.safetensors: tensor \"model.encoder.layers.0.fc1.weight\": the part for "
            "encoder.layers.0.feed_forward.first.weight must be F32 [12, 8] (is F32 [8, 12])");
  EXPECT_EQ(changed([&] { tensor("model.encoder.layers.1.fc1.bias").values[3] = NAN; }),
            "model/model.safetensors: tensor \"model.encoder.layers.1.fc1.bias\": holds a number that is not finite");
  EXPECT_EQ(changed([&] { tensor("model.encoder.layers.1.fc1.bias").values[3] = INFINITY; }),
            "model/model.safetensors: tensor \"model.encoder.layers.1.fc1.bias\": holds a number that is not finite");
  EXPECT_EQ(changed([&] {
              tensors.push_back({"surprise", {1}, {1}});
            }),
            "model/model.safetensors: tensor \"surprise\": F32 [1] is not part of the model");
  EXPECT_EQ(changed([&] { vocabulary["d"] = 7; }),
            "model/vocab.json: must have 7 pieces, one for each embedding, or at most 4096 fewer (has 8)");
  EXPECT_EQ(changed([&] { vocabulary["b"] = 2; }), "model/vocab.json: \"a\" and \"b\" both have the id 2");
  EXPECT_EQ(changed([&] { vocabulary["b"] = 9; }),
            "model/vocab.json: the id of \"b\" must be below 7, the number of pieces (is 9)");
  EXPECT_EQ(changed([&] { vocabulary["b"] = -1; }), "model/vocab.json: the id of \"b\" must be a whole number from 0");
  EXPECT_EQ(changed([&] { options.tokens = false; }), "model/source.spm: cannot be opened: No such file or directory");
}

TEST_F(ImportTest, UnknownFilesAreRefused) {
  std::filesystem::create_directory(source());
  EXPECT_EQ(error(source()),
            "model: expected model.safetensors or pytorch_model.bin with config.json, model.bin, or metadata.json");
  spill(source() + "/pytorch_model.bin", "x");
  spill(source() + "/config.json", R"({"model_type": "bert"})");
  EXPECT_EQ(error(source()), "model/config.json: vocab_size is missing");
  spill(directory / "file", "x");
  EXPECT_EQ(error(directory / "file"), "file: not a safetensors file: has only 1 bytes");
  spill(out(), "");
  EXPECT_EQ(error_if_any([&] { import_model(source(), out()); }), out() + ": already exists");
}

// CTranslate2 and Argos Translate.
class ImportCTranslate2 : public ImportTest {
 protected:
  ImportCTranslate2() : model(random_model(changed())), tensors(testing::as_ctranslate2(*model)) {}

  static ModelConfig changed() {
    ModelConfig c = foreign_config();
    c.positions = Positions::closed_halves;
    c.max_length = 1024;
    return c;
  }
  CTranslate2Writer writer(uint32_t version = 6, uint32_t revision = 7,
                           CTranslate2Writer::Type type = CTranslate2Writer::f32) const {
    CTranslate2Writer w(version, revision);
    for (const auto& tensor : tensors) w.add(tensor, type);
    for (const std::string side : {"encoder/", "decoder/"}) {
      w.add_attribute(side + "num_heads", int16_t{2});
      w.add_attribute(side + "pre_norm", int8_t{0});
      w.add_attribute(side + "activation", int8_t{2});
    }
    if (version >= 3) {
      w.add_alias("encoder/embeddings_0/weight", "decoder/embeddings/weight");
      w.add_alias("decoder/projection/weight", "decoder/embeddings/weight");
      return w;
    }
    for (const char* name : {"encoder/embeddings/weight", "decoder/projection/weight"}) {
      auto copy = tensors.front();
      copy.name = name;
      w.add(copy, type);
    }
    return w;
  }
  void write(const std::string& model_bin, const std::string& settings = "") const {
    std::filesystem::create_directory(source());
    spill(source() + "/model.bin", model_bin);
    spill(source() + "/shared_vocabulary.json", pieces_to_json(pieces));
    if (!settings.empty()) spill(source() + "/config.json", settings);
  }
  std::string error_of_bytes(const std::string& model_bin, const std::string& settings = "") const {
    std::filesystem::remove_all(source());
    write(model_bin, settings);
    return error(source());
  }

  std::vector<std::string> pieces = {"<blank>", "<s>", "</s>", "a", "b", "c", "<unk>"};
  std::unique_ptr<Transformer<float>> model;
  ForeignModel tensors;
};

TEST_F(ImportCTranslate2, AMetadataFileDoesNotMakeItAnArgosPackage) {
  write(writer().bytes());
  spill(source() + "/metadata.json", "{}");
  EXPECT_EQ(import_model(source(), out()).kind, "CTranslate2");
}

// A stored number is off by half a step. A step is 1/127 of a row's largest number in int8, and 1/1000 in int16, where
// the largest of a parameter is at least 0.3; in bfloat16 it is 2⁻⁸ of the number. In float16 the test's writer rounds
// down, so a number is off by a whole step of 2⁻¹⁰.
TEST_F(ImportCTranslate2, PreservesParametersInEveryVersionAndType) {
  const std::pair<CTranslate2Writer::Type, double> kTypes[] = {{CTranslate2Writer::f32, 0},
                                                               {CTranslate2Writer::i8, 0.5 / 127 + 1e-6},
                                                               {CTranslate2Writer::i16, 0.5e-3 / 0.3},
                                                               {CTranslate2Writer::f16, 0x1p-10},
                                                               {CTranslate2Writer::bf16, 0x1p-8}};
  for (const uint32_t version : {2, 3, 4, 6})
    for (const auto& [type, tolerance] : kTypes) {
      if (version < 4 && type > CTranslate2Writer::i16) continue;
      SCOPED_TRACE(std::to_string(version) + ", type " + std::to_string(type));
      write(writer(version, 7, type).bytes());
      EXPECT_EQ(import_model(source(), out()).kind, "CTranslate2");
      const TranslatorRun run = load_run<TranslatorRun>(out());
      EXPECT_EQ(run.model->config(), model->config());
      expect_parameters(*run.model, *model, tolerance);
      EXPECT_EQ(run.tokens.start, 1);
      EXPECT_EQ(run.tokens.end, 2);
      EXPECT_EQ(run.tokens.unknown, 6);
      EXPECT_EQ(run.tokens.min_length, 1);
      EXPECT_TRUE(run.tokens.source_after.empty());
      EXPECT_EQ(run.tokenizers.source.encode("a c x"), (std::vector<int32_t>{3, 5, 6}));
      EXPECT_EQ(run.tokenizers.target.decode(std::vector<int32_t>{4, 3}), "b a");
      std::filesystem::remove_all(out());
    }
}

TEST_F(ImportCTranslate2, TokensComeFromConfigJsonOrOldAttributes) {
  write(writer().bytes(), R"({"add_source_eos": true, "add_source_bos": true, "decoder_start_token": "</s>"})");
  import_model(source(), out());
  const TranslationTokens tokens = load_run<TranslatorRun>(out()).tokens;
  EXPECT_EQ(tokens.source_before, std::vector<int32_t>{1});
  EXPECT_EQ(tokens.source_after, std::vector<int32_t>{2});
  EXPECT_EQ(tokens.start, 2);
  std::filesystem::remove_all(out());
  std::filesystem::remove_all(source());

  CTranslate2Writer old = writer(5, 6);
  old.add_attribute("with_source_eos", int8_t{1});
  old.add_attribute("with_target_bos", int8_t{0});
  write(old.bytes());
  import_model(source(), out());
  EXPECT_EQ(load_run<TranslatorRun>(out()).tokens.start, 2);
  EXPECT_EQ(load_run<TranslatorRun>(out()).tokens.source_after, std::vector<int32_t>{2});
  std::filesystem::remove_all(out());

  ImportOptions options;
  options.source_end = "", options.start = "<s>";
  import_model(source(), out(), options);
  EXPECT_EQ(load_run<TranslatorRun>(out()).tokens.start, 1);
  EXPECT_TRUE(load_run<TranslatorRun>(out()).tokens.source_after.empty());
}

TEST_F(ImportCTranslate2, BartAndPegasusReadWholeTexts) {
  const auto sentences_of = [&](const CTranslate2Writer& w) {
    write(w.bytes());
    import_model(source(), out());
    const std::optional<Sentences> sentences = read_decoding_defaults(RunDirectory(out())).sentences;
    std::filesystem::remove_all(out());
    return sentences;
  };
  EXPECT_EQ(sentences_of(writer()), std::nullopt);
  const int64_t d = model->config().d_model;
  CTranslate2Writer learned = writer();
  for (const std::string side : {"encoder/", "decoder/"})
    learned.add({side + "position_encodings/encodings", {9, d}, std::vector<float>(to_size(9 * d), 0.5f)},
                CTranslate2Writer::f32);
  EXPECT_EQ(sentences_of(learned), std::nullopt);  // as MarianMT has them in a file
  CTranslate2Writer bart = learned;
  for (const std::string side : {"encoder/", "decoder/"})
    for (const std::string name : {"gamma", "beta"})
      bart.add({side + "layernorm_embedding/" + name, {d}, std::vector<float>(to_size(d), 0.5f)},
               CTranslate2Writer::f32);
  EXPECT_EQ(sentences_of(bart), Sentences::line);
  pieces[3] = "<mask_1>", pieces[4] = "<unk_2>";
  EXPECT_EQ(sentences_of(writer()), Sentences::line);
}

TEST_F(ImportCTranslate2, AMissingUnknownTokenIsAdded) {
  pieces.pop_back();
  write(writer().bytes());
  import_model(source(), out());
  EXPECT_EQ(load_run<TranslatorRun>(out()).tokens.unknown, 6);
}

TEST_F(ImportCTranslate2, UnsupportedFeaturesAreRefusedByName) {
  const auto with = [&](const std::string& name, auto value) {
    CTranslate2Writer w = writer();
    w.add_attribute(name, value);
    return error_of_bytes(w.bytes());
  };
  EXPECT_EQ(with("decoder/alibi", int8_t{1}), "model/model.bin: tensor \"decoder/alibi\": must be 0");
  EXPECT_EQ(with("decoder/alibi", int8_t{0}), "");
  EXPECT_EQ(with("decoder/alignment_layer", int16_t{-1}), "");
  EXPECT_EQ(with("decoder/layer_0/self_attention/rotary_dim", 0.0f),
            "model/model.bin: tensor \"decoder/layer_0/self_attention/rotary_dim\": not supported: rotary positions");
  EXPECT_EQ(
      with("decoder/scale_embeddings", 3.0f),
      "model/model.bin: tensor \"decoder/scale_embeddings\": must be 1 or 2.8284271247461903, the square root of the "
      "width (is 3)");
  EXPECT_EQ(with("encoder/scale_embeddings", int8_t{0}),
            "model/model.bin: scale_embeddings must be equal in encoder and decoder (is 0 and 1)");
  EXPECT_EQ(with("decoder/start_from_zero_embedding", int8_t{1}), "");
  EXPECT_EQ(with("surprise", int8_t{1}), "model/model.bin: tensor \"surprise\": I8 [] is not part of the model");
  EXPECT_EQ(error_of_bytes(writer().bytes("WhisperSpec")),
            "model/model.bin: must be an encoder-decoder Transformer (the specification is \"WhisperSpec\")");
  EXPECT_EQ(error_of_bytes(writer(6, 1).bytes()), "model/model.bin: revision must be between 2 and 7 (is 1)");
  EXPECT_EQ(error_of_bytes(writer().bytes(), R"({"decoder_start_token": null})"),
            "model: does not say which token a translation starts from; the option start must name it");
  EXPECT_EQ(error_of_bytes(writer().bytes(), R"({"decoder_start_token": "<go>"})"),
            "model: start is \"<go>\", which is not in the vocabulary");
  pieces[3] = "b";
  EXPECT_EQ(error_of_bytes(writer().bytes()), "model/shared_vocabulary.json: pieces 3 and 4 are both \"b\"");
  pieces[3] = "a", pieces.insert(pieces.begin(), "x");
  EXPECT_EQ(error_of_bytes(writer().bytes()),
            "model/model.bin: source embeddings must match the vocabulary (are 7, the vocabulary has 8 tokens)");
}

TEST_F(ImportCTranslate2, WeightsOfTheWrongShapeOrValueAreRefused) {
  const auto changed = [&](const std::string& name, const std::function<void(testing::ForeignTensor&)>& change) {
    const ForeignModel kept = tensors;
    change(*std::ranges::find(tensors, name, &testing::ForeignTensor::name));
    const std::string bytes = writer().bytes();
    tensors = kept;
    return error_of_bytes(bytes);
  };
  const std::string name = "decoder/layer_0/self_attention/linear_0/weight";
  EXPECT_EQ(changed(name, [](auto& t) { t.values[9] = NAN; }),
            "model/model.bin: tensor \"" + name + "\": holds a number that is not finite");
  EXPECT_EQ(changed(name,
                    [](auto& t) {
                      t.shape = {8, 24};
                    }),
            "model/model.bin: tensor \"" + name + "\": must hold 3 parts of the same size (is F32 [8, 24])");
  EXPECT_EQ(changed(name,
                    [](auto& t) {
                      t.shape = {12, 16};
                    }),
            "model/model.bin: tensor \"" + name +
                "\": the part for decoder.layers.0.self_attention.q.weight must be F32 [8, 8] "
                "(is F32 [4, 16])");
  EXPECT_EQ(changed(name, [](auto& t) { t.name = "w"; }), "model/model.bin: tensor \"" + name + "\" is missing");
}

// An Argos Translate package of these files.
void write_zip(const std::string& path, const std::vector<std::pair<std::string, std::string>>& files) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  for (const auto& [name, content] : files)
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, content.data(), content.size(), 0), 0);
  ASSERT_EQ(zip_close(archive), 0);
}

class ImportArgos : public ImportCTranslate2 {
 protected:
  // A SentencePiece model, and a CTranslate2 vocabulary of 7 of its pieces.
  ImportArgos() {
    const Tokenizer tokenizer = Tokenizer::train(testing::sentences(50, 1), {TokenizerKind::bpe, 40});
    for (int32_t i = 0; i < 4; i++) pieces[to_size(2 + i)] = tokenizer.piece(i == 0 ? 2 : 30 + i);
    files = {{"en_de/metadata.json", R"({"from_code": "en", "to_code": "de"})"},
             {"en_de/sentencepiece.model", tokenizer.serialized()},
             {"en_de/model/model.bin", writer().bytes()},
             {"en_de/model/shared_vocabulary.json", pieces_to_json(pieces)},
             {"en_de/stanza/en/metadata.json", "not ours"}};
  }
  std::string package() const { return directory / "en_de.argosmodel"; }

  std::vector<std::pair<std::string, std::string>> files;
};

TEST_F(ImportArgos, ReadsThePackageAndItsFolder) {
  write_zip(package(), files);
  EXPECT_EQ(import_model(package(), out()).kind, "Argos Translate");
  expect_parameters(*load_run<TranslatorRun>(out()).model, *model, 0);
  EXPECT_EQ(load_run<TranslatorRun>(out()).tokenizers.source.serialized(), files[1].second);
  std::filesystem::remove_all(out());
  for (const auto& [name, content] : files) {
    const std::filesystem::path path = directory / name;
    std::filesystem::create_directories(path.parent_path());
    spill(path.string(), content);
  }
  import_model(directory / "en_de", out());
  expect_parameters(*load_run<TranslatorRun>(out()).model, *model, 0);
}

TEST_F(ImportArgos, HostilePackagesAreRefused) {
  const auto with = [&](const std::function<void()>& change) {
    const auto kept = files;
    change();
    write_zip(package(), files);
    files = kept;
    return error(package());
  };
  EXPECT_EQ(with([&] { files[0].second = R"({"type": "sbd"})"; }),
            "en_de.argosmodel/metadata.json: type must be translate (is \"sbd\")");
  EXPECT_EQ(with([&] { files[1].first = "en_de/bpe.model"; }),
            "en_de.argosmodel: sentencepiece.model is missing; bpe.model needs the tokenizer of Moses, which is not "
            "supported: set the option tokens to pass text that is already split");
  EXPECT_EQ(with([&] { files[2].first = "en_de/../model.bin"; }), "en_de.argosmodel/model/model.bin: is missing");
  EXPECT_EQ(with([&] {
              files.push_back({"metadata.json", "{}"});
            }),
            "en_de.argosmodel: must hold one metadata.json (holds \"en_de/metadata.json\" and \"metadata.json\")");
  EXPECT_EQ(with([&] {
              files.push_back({"x/data.pkl", ""}), files.erase(files.begin()), files.pop_back();
            }),
            "en_de.argosmodel: expected model.safetensors or pytorch_model.bin with config.json, model.bin, or "
            "metadata.json");
  EXPECT_EQ(with([&] {
              files = {{"x/data.pkl", ""}};
            }),
            "en_de.argosmodel: must begin with PROTO (at byte 0 of the pickle)");
  const std::string bomb = with([&] { files[2].second = std::string((size_t{64} << 20) + (size_t{1} << 20), '\0'); });
  testing::expect_contains(bomb, "en_de.argosmodel/model/model.bin: ");
  testing::expect_contains(bomb, "must have at most 60 MiB more than the archive of");
}

TEST_F(ImportArgos, TruncatedOrCorruptPackagesAreErrorsOrTheSameModel) {
  write_zip(package(), files);
  std::string bytes(std::filesystem::file_size(package()), '\0');
  std::ifstream(package(), std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (size_t size = 4; size < bytes.size(); size += 997) {
    spill(package(), bytes.substr(0, size));
    EXPECT_TRUE(error(package()).starts_with("en_de.argosmodel")) << size;
  }
  for (size_t i = 4; i < bytes.size(); i += 997) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    spill(package(), changed);
    const std::string text = error(package());
    EXPECT_TRUE(text.empty() || text.starts_with("en_de.argosmodel")) << text;
  }
}

TEST_F(ImportTest, AStateDictionaryNeedsNamesAndHeads) {
  ModelConfig config = foreign_config();
  config.activation = Activation::gelu;
  config.norm.position = NormPosition::pre;
  config.norm.final = true;
  config.tied_output = false;
  config.positions = Positions::interleaved;
  const auto model = random_model(config);
  ForeignModel tensors = testing::as_torch(*model);
  tensors.push_back({"steps", {1}, {1}});
  testing::write_foreign(directory / "m.safetensors", tensors);
  spill(directory / "tokens.txt", "<s>\n</s>\n<unk>\na\nb\nc\nd\n");

  ImportOptions options;
  options.source_vocabulary = directory / "tokens.txt";
  const auto error = [&] { return ImportTest::error(directory / "m.safetensors", options); };
  EXPECT_EQ(error(), "m.safetensors: heads must be given, because tensors do not show their number");
  options.torch.heads = 0;
  EXPECT_EQ(error(), "heads must be between 1 and 16777216 (is 0)");
  options.torch.heads = 3;
  EXPECT_EQ(error(), "m.safetensors: heads must divide the width 8 (is 3)");
  options.torch.heads = 2;
  EXPECT_EQ(error(), "m.safetensors: source_embedding must name a tensor");
  options.torch.source_embedding = "src.weight";
  EXPECT_EQ(error(), "m.safetensors: tensor \"generator.bias\": F32 [7] is not part of the model");
  options.torch.output_layer = "generator.weight";
  EXPECT_EQ(error(), "m.safetensors: tensor \"steps\": F32 [1] is not part of the model");
  options.torch.ignore = {"steps"};
  EXPECT_EQ(error(), "");
  options.torch.activation = config.activation;
  options.torch.norm_position = config.norm.position;
  options.torch.max_length = config.max_length;
  import_model(directory / "m.safetensors", out(), options);
  const TranslatorRun run = load_run<TranslatorRun>(out());
  EXPECT_EQ(run.model->config(), config);
  expect_parameters(*run.model, *model, 0);
  EXPECT_EQ(run.tokens.source_after, std::vector<int32_t>{1});
  std::filesystem::remove_all(out());
  options.source_vocabulary.clear();
  EXPECT_EQ(error(), "a state dictionary has no vocabulary: source_vocabulary or source_tokenizer must name one");
}

}  // namespace
}  // namespace qkv
