// Encoder-decoders of transformers: the encoder's output, logits, greedy and beam search, forced scores, and ids of
// text. tests/golden/encoder_decoders/make.py writes them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "convert/architecture.h"
#include "decode/search/forced.h"
#include "decode/search/sentence_decoder.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "qkv/import.h"
#include "qkv/runs.h"
#include "qkv/translator.h"
#include "tests/support/encoder_decoder_cases.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;
using TokenIds = std::vector<int32_t>;
using TokenLists = std::vector<TokenIds>;

std::string case_path(const std::string& name) { return std::string(QKV_GOLDEN_DIR "/encoder_decoders/") + name; }

// Expects every number within 1e-5 of the largest expected one.
void expect_close(const Matrix<float>& found, const TensorView& expected) {
  ASSERT_EQ(expected.shape, (std::vector<int64_t>{found.rows, found.cols}));
  std::vector<float> wanted(expected.data.size() / sizeof(float));
  std::memcpy(wanted.data(), expected.data.data(), expected.data.size());
  float largest = 0, error = 0;
  for (int64_t n = 0; n < found.rows; n++)
    for (int64_t i = 0; i < found.cols; i++) {
      const float value = wanted[to_size(n * found.cols + i)];
      largest = std::max(largest, std::abs(value));
      error = std::max(error, std::abs(value - found(n, i)));
    }
  EXPECT_LE(error, 1e-5f * largest);
}

class EncoderDecoders : public ::testing::TestWithParam<const char*> {
 protected:
  EncoderDecoders()
      : known_(json::parse(testing::slurp(case_path(GetParam()) + "/expected.json"))),
        start_(known_["start"].get<TokenIds>()),
        sources_(known_["sources"].get<TokenLists>()),
        targets_(known_["targets"].get<TokenLists>()),
        run_(make(GetParam(), out())) {}

  static TranslatorRun make(const std::string& name, const std::string& to) {
    import_model(case_path(name), to);
    return load_run<TranslatorRun>(to);
  }

  std::string out() const { return directory_ / "run"; }

  std::vector<SearchInput> inputs() const {
    std::vector<SearchInput> inputs;
    for (const TokenIds& source : sources_) inputs.push_back({source, {}, start_});
    return inputs;
  }

  SearchOptions search_options(int64_t beam) const {
    SearchOptions options;
    options.beam = options.n_best = beam;
    options.max_length = known_["max_tokens"];
    options.end = known_["end"];
    options.never = run_.tokens.never;
    return options;
  }

  TempDir directory_;
  const json known_;
  const TokenIds start_;
  const TokenLists sources_, targets_;
  TranslatorRun run_;
  Arena arena_;
};

TEST_P(EncoderDecoders, OnlyModelsOfWholeTextsDoNotSplitLines) {
  const std::set<std::string> of_texts = {"bart", "flan_t5", "mt5", "pegasus", "t5"};
  const std::optional<Sentences> sentences = read_decoding_defaults(RunDirectory(out())).sentences;
  EXPECT_EQ(sentences.has_value(), of_texts.contains(GetParam()));
  EXPECT_EQ(sentences.value_or(Sentences::line), Sentences::line);
  EXPECT_TRUE(run_.abbreviations.empty());
}

TEST_P(EncoderDecoders, EncoderOutputAndLogitsMatchTransformers) {
  const Safetensors expected = Safetensors::open(case_path(GetParam()) + "/expected.safetensors");
  Context context{arena_};
  context.inference = true;
  Packed sources, read;
  std::vector<int64_t> rows;  // those that predict a token of a target
  for (size_t i = 0; i < sources_.size(); i++) {
    sources.append(sources_[i]);
    TokenIds ids = start_;
    ids.insert(ids.end(), targets_[i].begin(), targets_[i].end() - 1);
    for (size_t t = start_.size() - 1; t < ids.size(); t++) rows.push_back(read.tokens() + static_cast<int64_t>(t));
    read.append(ids);
  }
  expect_close(run_.model->encode(sources, context), *expected.find("memory"));
  Transformer<float>::Saved saved;
  run_.model->forward(sources, read, context, saved);
  const Matrix<float> logits = run_.model->output().logits(saved.h, context);
  const Matrix<float> used = arena_.matrix<float>(std::ssize(rows), logits.cols);
  for (size_t n = 0; n < rows.size(); n++)
    std::copy_n(logits.row(rows[n]), logits.cols, used.row(static_cast<int64_t>(n)));
  expect_close(used, *expected.find("logits"));
}

TEST_P(EncoderDecoders, GreedyAndBeamSearchMatchTransformers) {
  const std::vector<std::vector<Decoded>> greedy = n_best(*run_.model, inputs(), search_options(1), arena_),
                                          beam = n_best(*run_.model, inputs(), search_options(4), arena_);
  for (size_t i = 0; i < sources_.size(); i++) {
    const int32_t end = known_["end"];
    EXPECT_EQ(greedy[i].front().with_end(end), known_["greedy"][i].get<TokenIds>());
    ASSERT_EQ(beam[i].size(), 4u);
    for (size_t k = 0; k < 4; k++) {
      EXPECT_EQ(beam[i][k].with_end(end), known_["beam"][i][k].get<TokenIds>());
      EXPECT_NEAR(beam[i][k].score, known_["scores"][i][k].get<double>(), 1e-4);
    }
  }
}

TEST_P(EncoderDecoders, ForcedScoresMatchTransformers) {
  std::vector<ForcedInput> pairs;
  for (size_t i = 0; i < sources_.size(); i++) pairs.push_back({sources_[i], targets_[i], start_});
  const std::vector<Forced> forced = force_all(*run_.model, pairs, 0, ForcedValues::both, {}, arena_);
  for (size_t i = 0; i < sources_.size(); i++) {
    ASSERT_EQ(forced[i].log_probabilities.size(), targets_[i].size());
    for (size_t t = 0; t < targets_[i].size(); t++)
      EXPECT_NEAR(forced[i].log_probabilities[t], known_["forced"][i][t].get<double>(), 1e-4);
    EXPECT_EQ(forced[i].attention.size(), targets_[i].size() * sources_[i].size());
  }
}

TEST_P(EncoderDecoders, TextIsReadAndTranslatedAsInTransformers) {
  const Translator translator(out());
  for (const json& text : known_["texts"]) {
    TranslateOptions options;
    options.beam = 1;
    options.max_length = known_["max_tokens"];
    options.alignment = options.attention = true;
    options.source_language = text["source_language"], options.target_language = text["target_language"];
    const std::string line = text["text"];
    const Translation found = translator.translate({line}, options).front();
    const auto spelled = [](const Tokenizer& tokenizer, TokenIds ids, int32_t end) {
      if (!ids.empty() && ids.back() == end) ids.pop_back();
      return tokenizer.pieces(ids);
    };
    const Hypothesis& best = found.hypotheses.front();
    EXPECT_EQ(found.source_tokens, spelled(run_.tokenizers.source, text["ids"].get<TokenIds>(), -1));
    EXPECT_EQ(best.tokens, spelled(run_.tokenizers.target, text["greedy"].get<TokenIds>(), run_.tokens.end));
    EXPECT_EQ(best.attention.size(), best.tokens.size());
    // T5's sentinels and rows without a token have no text. transformers replaces a part of a character.
    const std::string translation = text["translation"];
    if (translation != "\uFFFD") {
      EXPECT_EQ(best.text, translation);
    }
    if (std::ranges::find(best.tokens, "") != best.tokens.end()) continue;  // a row without a token
    if (best.token_scores.size() == best.tokens.size()) continue;           // no end token, which score() adds
    const Hypothesis forced = translator.score({line}, {best.tokens}, options).front().hypotheses.front();
    EXPECT_NEAR(forced.score, best.score, 1e-5);
    EXPECT_NEAR(forced.log_probability, best.log_probability, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EncoderDecoders, ::testing::ValuesIn(testing::kEncoderDecoderCases),
                         [](const auto& model) { return std::string(model.param); });

class Languages : public ::testing::Test {
 protected:
  std::string import(const std::string& name) const {
    const std::string out = directory_ / name;
    import_model(case_path(name), out);
    return out;
  }

  TempDir directory_;
};

TEST_F(Languages, AreRequiredAndErrorsListTheirCodes) {
  const Translator nllb(import("nllb"));
  EXPECT_EQ(nllb.languages(), (std::vector<std::string>{"deu_Latn", "eng_Latn", "zho_Hans"}));
  TranslateOptions options;
  const auto error = [&] { return error_of([&] { nllb.translate({"the dog"}, options); }); };
  EXPECT_EQ(error(), "line 1: source_language must be one of deu_Latn, eng_Latn, zho_Hans (is missing)");
  options.source_language = "eng_Latn", options.target_language = "de";
  EXPECT_EQ(error(), "line 1: target_language must be one of deu_Latn, eng_Latn, zho_Hans (is \"de\")");
  const Translator bart(import("bart"));
  EXPECT_TRUE(bart.languages().empty());
  EXPECT_EQ(error_of([&] { bart.translate({"the dog"}, options); }),
            "line 1: source_language must be empty, because the model does not read it (is \"eng_Latn\")");
}

TEST_F(Languages, MayBeCodesOrTokensAndDifferFromLineToLine) {
  const Translator translator(import("m2m_100"));
  TranslateOptions options;
  options.beam = 2;
  options.source_language = "en", options.target_language = "de";
  const std::string line = "the dog runs in the park .";
  const Translation german = translator.translate({line}, options).front();
  options.source_language = "__en__", options.target_language = "__fr__";
  const Translation french = translator.translate({line}, options).front();
  EXPECT_EQ(german.source_tokens, french.source_tokens);
  std::vector<SourceLine> lines = {{line, ""}, {line, "", "", "de"}, {line, "", "de", ""}};
  std::vector<Translation> found;
  size_t next = 0;
  translator.translate(
      [&](SourceLine& to, bool) {
        if (next == lines.size()) return Next::end;
        to = lines[next++];
        return Next::line;
      },
      [&](Translation&& t) { found.push_back(std::move(t)); }, options);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].hypotheses.front().tokens, french.hypotheses.front().tokens);
  EXPECT_EQ(found[0].hypotheses.front().score, french.hypotheses.front().score);
  EXPECT_EQ(found[1].hypotheses.front().tokens, german.hypotheses.front().tokens);
  EXPECT_EQ(found[1].hypotheses.front().score, german.hypotheses.front().score);
  EXPECT_EQ(found[2].source_tokens.front(), "__de__");
}

TEST_F(Languages, ServeAttentionPrefixesAlternativesAndEightBitWeights) {
  const std::string run = import("mbart50");
  const Translator translator(run);
  TranslateOptions languages;
  languages.source_language = "de", languages.target_language = "en";
  const AttentionMap map = translator.attend("der Hund", "the dog", languages);
  const std::vector<std::string>& rows = map.kinds[1].rows;
  EXPECT_EQ((std::vector<std::string>{rows[0], rows[1]}), (std::vector<std::string>{"</s>", "en_XX"}));
  EXPECT_EQ(map.kinds[2].rows.front(), "en_XX");
  EXPECT_EQ(map.kinds[0].rows.front(), "de_DE");
  TranslateOptions options;
  options.source_language = "de", options.target_language = "en";
  options.alternatives = true;
  options.n_best = 2;
  const Translation found = translator.translate({"der Hund läuft"}, options, {"the dog"}).front();
  ASSERT_EQ(found.hypotheses.size(), 2u);
  for (const Hypothesis& h : found.hypotheses) EXPECT_TRUE(h.text.starts_with("the dog")) << h.text;
  const std::string small = directory_ / "small";
  quantize_run(run, small);
  EXPECT_EQ(Translator(small).languages(), translator.languages());
  options.alternatives = false;
  options.n_best = 1;
  EXPECT_FALSE(Translator(small).translate({"der Hund läuft"}, options).empty());
}

TEST_F(Languages, TokensOfLanguagesAreNoText) {
  const std::string run = import("nllb");
  const Tokenizer target = load_run<TranslatorRun>(run).tokenizers.target;
  const TokenIds dog = target.encode("the dog");
  const auto id = [&](const char* piece) { return *target.id(piece); };
  TokenIds ids = {id("deu_Latn"), id("<pad>")};
  ids.insert(ids.end(), dog.begin(), dog.end());
  for (const char* piece : {"eng_Latn", "<mask>", "</s>"}) ids.push_back(id(piece));
  EXPECT_EQ(target.decode(ids), target.decode(dog));
  EXPECT_EQ(target.pieces(ids).front(), "deu_Latn");
}

TEST_F(Languages, TheForcedEndMustBeTheEndToken) {
  const std::string model = directory_ / "model";
  std::filesystem::copy(case_path("mbart"), model);
  json config = json::parse(testing::slurp(model + "/config.json"));
  const auto error = [&](const json& forced) {
    config["forced_eos_token_id"] = forced;
    testing::spill(model + "/config.json", config.dump());
    const std::string text = testing::error_if_any([&] { import_model(model, directory_ / "run"); });
    std::filesystem::remove_all(directory_ / "run");
    return text;
  };
  EXPECT_EQ(error(nullptr), "");
  EXPECT_EQ(error(2), "");
  EXPECT_EQ(error({2}), "");
  EXPECT_EQ(error(5), model + "/config.json: forced_eos_token_id must be eos_token_id, 2 (is \"5\")");
}

TEST(EncoderDecoderFiles, UnsupportedFieldsAreNamed) {
  const TempDir directory;
  const std::string model = directory / "model";
  const auto error = [&](const char* name, const char* member, const json& value) {
    std::filesystem::remove_all(model);
    std::filesystem::copy(case_path(name), model);
    json config = json::parse(testing::slurp(model + "/config.json"));
    config[member] = value;
    testing::spill(model + "/config.json", config.dump());
    return error_of([&] { import_model(model, directory / "run"); }).substr(directory.path().size() + 1);
  };
  EXPECT_EQ(error("bart", "normalize_before", true), "model/config.json: normalize_before must be false (is true)");
  EXPECT_EQ(error("mbart", "normalize_before", false), "model/config.json: normalize_before must be true (is false)");
  EXPECT_EQ(error("bart", "normalize_embedding", false),
            "model/config.json: normalize_embedding must be true (is false)");
  EXPECT_EQ(error("nllb", "add_final_layer_norm", false),
            "model/config.json: add_final_layer_norm must be true (is false)");
  EXPECT_EQ(error("pegasus", "decoder_ffn_dim", 7).substr(0, 68),
            "model/config.json: encoder_ffn_dim and decoder_ffn_dim must be equal");
  EXPECT_EQ(error("m2m_100", "decoder_attention_heads", 1).substr(0, 84),
            "model/config.json: encoder_attention_heads and decoder_attention_heads must be equal");
  EXPECT_EQ(error("mbart50", "activation_function", "tanh").substr(0, 57),
            "model/config.json: activation_function must be one of rel");
  EXPECT_EQ(error("madlad", "is_encoder_decoder", false),
            "model/config.json: is_encoder_decoder must be true (is false)");
  EXPECT_EQ(error("opus", "model_type", "fsmt").find("model/config.json: model_type must be "), 0u);
}

TEST(EncoderDecoderCases, IncludeEveryEncoderDecoder) {
  std::set<std::string> types;
  for (const char* name : testing::kEncoderDecoderCases)
    types.insert(json::parse(testing::slurp(case_path(name) + "/config.json"))["model_type"]);
  for (const Architecture* a : all_architectures())
    EXPECT_TRUE(a->base.encoder_layers == 0 || a->base.decoder_layers == 0 || types.contains(a->model_types.front()))
        << a->name;
}

}  // namespace
}  // namespace qkv
