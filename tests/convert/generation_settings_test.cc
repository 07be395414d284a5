// Settings of generation_config.json: taken over as defaults of the run, with the results of transformers, or named.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "decode/search/sentence_decoder.h"
#include "io/runs/run.h"
#include "qkv/generator.h"
#include "qkv/import.h"
#include "qkv/runs.h"
#include "qkv/translator.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;
using TokenIds = std::vector<int32_t>;

// A copy of a golden model with other settings.
class ModelWithSettings {
 public:
  explicit ModelWithSettings(const std::string& path) {
    std::filesystem::copy(QKV_GOLDEN_DIR "/" + path, model(), std::filesystem::copy_options::recursive);
  }
  std::string model() const { return directory_ / "model"; }
  std::string run() const { return directory_ / "run"; }
  void set(const json& settings, const char* file = "generation_config.json") const {
    const std::string path = model() + "/" + file;
    json all = std::filesystem::exists(path) ? json::parse(testing::slurp(path)) : json::object();
    all.update(settings);
    testing::spill(path, all.dump());
  }
  std::vector<std::string> notes() const {
    std::filesystem::remove_all(run());
    return import_model(model(), run()).notes;
  }
  std::string error() const {
    std::string text = error_of([&] { notes(); });
    const size_t place = text.find(directory_.path());
    return place == std::string::npos ? text : text.erase(place, directory_.path().size() + 1);
  }
  TranslateOptions translate_options() const {
    EXPECT_EQ(notes(), std::vector<std::string>());
    return default_translate_options(run());
  }
  GenerateOptions generate_options() const {
    EXPECT_EQ(notes(), std::vector<std::string>());
    return default_generate_options(run());
  }

 private:
  TempDir directory_;
};

const char* const kOpus = "encoder_decoders/opus";

// Returns the best hypotheses of the sources with the defaults of the run.
std::vector<TokenIds> best(const std::string& directory, const json& known) {
  const TranslatorRun run = load_run<TranslatorRun>(directory);
  SearchOptions options{default_translate_options(directory)};
  options.end = run.tokens.end;
  options.never = run.tokens.never;
  const auto sources = known.at("sources").get<std::vector<TokenIds>>();
  const auto start = known.at("start").get<TokenIds>();
  std::vector<SearchInput> inputs;
  for (const TokenIds& source : sources) inputs.push_back({source, {}, start});
  Arena arena;
  std::vector<TokenIds> found;
  for (const auto& hypotheses : n_best(*run.model, inputs, options, arena))
    found.push_back(hypotheses.front().with_end(options.end));
  return found;
}

TEST(GenerationSettings, GiveTheResultsOfTransformers) {
  for (const char* name : {"opus", "t5", "bart", "m2m_100"}) {
    const std::string path = std::string("encoder_decoders/") + name;
    const json known = json::parse(testing::slurp(QKV_GOLDEN_DIR "/" + path + "/expected.json"));
    const json cases = json::parse(testing::slurp(QKV_GOLDEN_DIR "/" + path + "/settings.json"));
    ASSERT_GE(cases.size(), 5U);
    for (const json& one : cases) {
      SCOPED_TRACE(std::string(name) + one.at("settings").dump());
      const ModelWithSettings model(path);
      model.set(one.at("settings"));
      EXPECT_EQ(model.notes(), std::vector<std::string>());
      EXPECT_EQ(best(model.run(), known), one.at("outputs").get<std::vector<TokenIds>>());
    }
  }
}

TEST(GenerationSettings, OfConfigJsonCountWithoutTheirOwnFile) {
  const ModelWithSettings model(kOpus);
  model.set({{"num_beams", 6}, {"max_length", 512}, {"length_penalty", 0.7}}, "config.json");
  EXPECT_EQ(model.translate_options().beam, 5);  // the program's, because generation_config.json is there
  std::filesystem::rename(model.model() + "/generation_config.json", model.model() + "/other.json");
  model.set({{"decoder_start_token_id", 49}, {"bad_words_ids", {{49}}}}, "config.json");
  const TranslateOptions options = model.translate_options();
  EXPECT_EQ(options.beam, 6);
  EXPECT_EQ(options.max_length, 511);  // without the start token
  EXPECT_EQ(options.length_penalty, 0.7);
}

TEST(GenerationSettings, ThatAreLeftAreNamed) {
  const ModelWithSettings model(kOpus);
  model.set({{"num_beams", 4},
             {"begin_suppress_tokens", {1}},
             {"sequence_bias", {{{3}, 1.0}}},
             {"exponential_decay_length_penalty", {5, 1.1}},
             {"early_stopping", false},
             {"diversity_penalty", 0.0},
             {"do_sample", true},
             {"temperature", 0.5},
             {"use_cache", true},
             {"invented", 3}});
  EXPECT_EQ(model.notes(),
            (std::vector<std::string>{"not taken over from generation_config.json: begin_suppress_tokens, do_sample, "
                                      "exponential_decay_length_penalty, invented, sequence_bias, temperature"}));
  const ModelWithSettings greedy(kOpus);
  greedy.set({{"num_beams", 1}, {"repetition_penalty", 1.2}, {"no_repeat_ngram_size", 1}});
  EXPECT_EQ(greedy.notes(), (std::vector<std::string>{"not taken over from generation_config.json: "
                                                      "no_repeat_ngram_size, repetition_penalty"}));
  const ModelWithSettings bart("encoder_decoders/bart");  // the start token is the end token
  bart.set({{"num_beams", 2}, {"early_stopping", true}, {"repetition_penalty", 1.2}});
  EXPECT_EQ(bart.notes(), (std::vector<std::string>{"not taken over from generation_config.json: repetition_penalty"}));
}

TEST(GenerationSettings, SayWhenBeamSearchEnds) {
  const auto found = [](const json& settings) {
    const ModelWithSettings model(kOpus);
    model.set(settings);
    return model.translate_options().early_stopping;
  };
  EXPECT_EQ(found(json::object()), EarlyStopping::unbeaten);
  EXPECT_EQ(found({{"early_stopping", nullptr}}), EarlyStopping::unbeaten);
  EXPECT_EQ(found({{"early_stopping", false}, {"num_beams", 4}}), EarlyStopping::unbeaten);
  EXPECT_EQ(found({{"early_stopping", true}}), EarlyStopping::at_beam);
  EXPECT_EQ(found({{"early_stopping", "never"}}), EarlyStopping::never);
  const ModelWithSettings model(kOpus);
  for (const json& wrong : {json("sometimes"), json(3), json("true")}) {
    model.set({{"early_stopping", wrong}});
    const std::string expected = "model/generation_config.json: early_stopping must be true, false or never (is ";
    EXPECT_EQ(model.error().substr(0, expected.size()), expected) << wrong;
  }
}

// The outputs of settings.json differ by early_stopping alone.
TEST(GenerationSettings, EarlyStoppingChangesTheResultsOfTheCases) {
  int different = 0;
  for (const char* name : {"opus", "t5", "bart", "m2m_100"}) {
    std::map<std::string, std::set<std::string>> outputs;
    for (json& one :
         json::parse(testing::slurp(QKV_GOLDEN_DIR "/encoder_decoders/" + std::string(name) + "/settings.json"))) {
      one["settings"].erase("early_stopping");
      outputs[one["settings"].dump()].insert(one["outputs"].dump());
    }
    for (const auto& [settings, found] : outputs) different += found.size() > 1;
  }
  EXPECT_GE(different, 10);
}

TEST(GenerationSettings, LengthsDoNotCountTheTokensThatAreForced) {
  const ModelWithSettings opus(kOpus), bart("encoder_decoders/bart"), m2m("encoder_decoders/m2m_100");
  for (const auto& [model, forced] : {std::pair{&opus, 0}, {&bart, 1}, {&m2m, 1}}) {
    model->set({{"max_length", 20}, {"min_length", 5}});
    TranslateOptions options = model->translate_options();
    EXPECT_EQ(options.max_length, 19 - forced);
    EXPECT_EQ(options.min_length, 4 - forced);
    model->set({{"max_new_tokens", 10}, {"min_new_tokens", 3}});
    options = model->translate_options();
    EXPECT_EQ(options.max_length, 10 - forced);
    EXPECT_EQ(options.min_length, 3 - forced);
  }
}

TEST(GenerationSettings, OfLanguageModelsAreThoseOfSampling) {
  const ModelWithSettings model("sentence_transformers/qwen3_5");
  std::filesystem::remove(model.model() + "/modules.json");
  model.set({{"eos_token_id", {257}}});
  model.set({{"do_sample", true},
             {"temperature", 0.6},
             {"top_k", 20},
             {"top_p", 0.95},
             {"max_new_tokens", 77},
             {"max_length", 4096}});
  GenerateOptions options = model.generate_options();
  EXPECT_EQ(options.temperature, 0.6);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.top_p, 0.95);
  EXPECT_EQ(options.max_tokens, 77);
  model.set({{"do_sample", false}});
  options = model.generate_options();
  EXPECT_EQ(options.temperature, 0);
  EXPECT_EQ(options.top_k, 0);  // transformers does not read it then
  model.set({{"do_sample", true}, {"repetition_penalty", 1.1}, {"min_p", 0.1}, {"suppress_tokens", {3}}});
  EXPECT_EQ(model.notes(),
            (std::vector<std::string>{
                "not taken over from generation_config.json: min_p, repetition_penalty, suppress_tokens"}));
}

TEST(GenerationSettings, AreOfTheirTypesAndRanges) {
  const auto error = [](const json& settings) {
    const ModelWithSettings model(kOpus);
    model.set(settings);
    return model.error();
  };
  EXPECT_EQ(error({{"num_beams", 5000}}), "model/generation_config.json: beam must be between 1 and 1024 (is 5000)");
  EXPECT_EQ(error({{"num_beams", "four"}}), "model/generation_config.json: num_beams must be an integer");
  EXPECT_EQ(error({{"max_length", -3}}), "model/generation_config.json: max_length must be at least 0 (is -3)");
  EXPECT_EQ(error({{"suppress_tokens", {1000}}}),
            "model/generation_config.json: suppress_tokens must be below 50, the size of the vocabulary (holds 1000)");
}

TEST(GenerationSettings, AnEndTokenMayBeAListOfOne) {
  const ModelWithSettings model(kOpus);
  model.set({{"eos_token_id", {0}}});
  EXPECT_EQ(model.notes(), std::vector<std::string>());
  EXPECT_EQ(load_run<TranslatorRun>(model.run()).tokens.end, 0);
  model.set({{"eos_token_id", {0, 3}}});
  EXPECT_EQ(model.error(),
            "model/generation_config.json: eos_token_id must be one id in a translation model (is \"[0,3]\")");
}

TEST(GenerationSettings, StayInAQuantizedRunAndAreCheckedWhenRead) {
  const ModelWithSettings model(kOpus);
  model.set({{"num_beams", 2}});
  model.notes();
  const QuantizeReport report = quantize_run(model.run(), "", 8);
  EXPECT_EQ(default_translate_options(report.out).beam, 2);
  testing::spill(report.out + "/decoding.json", R"({"beam": 0})");
  EXPECT_NE(error_of([&] { default_translate_options(report.out); }).find("beam must be between 1 and 1024 (is 0)"),
            std::string::npos);
  testing::spill(report.out + "/decoding.json", R"({"beams": 2})");
  EXPECT_NE(error_of([&] { default_translate_options(report.out); }).find("decoding.json"), std::string::npos);
}

}  // namespace
}  // namespace qkv
