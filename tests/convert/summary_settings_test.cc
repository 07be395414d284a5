// Settings of task_specific_params for summaries: summary.json of the run, without an effect on translation.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/runs/decoding_defaults.h"
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

// A copy of a golden model with other members of config.json.
class SummarySettings : public ::testing::Test {
 protected:
  void use(const std::string& name, const json& members) const {
    std::filesystem::remove_all(model());
    std::filesystem::copy(QKV_GOLDEN_DIR "/encoder_decoders/" + name, model());
    const std::string path = model() + "/config.json";
    json config = json::parse(testing::slurp(path));
    config.update(members);
    testing::spill(path, config.dump());
  }
  void use_task(const std::string& name, const json& settings) const {
    use(name, {{"task_specific_params", {{"summarization", settings}}}});
  }
  std::string model() const { return directory_ / "model"; }
  std::string run() const { return directory_ / "run"; }

  std::vector<std::string> notes() const {
    std::filesystem::remove_all(run());
    return import_model(model(), run()).notes;
  }
  TranslateOptions options() const {
    EXPECT_EQ(notes(), std::vector<std::string>());
    return default_summary_options(run());
  }
  // Returns the error of import, without the name of the directory.
  std::string error() const {
    std::string text = error_of([&] { notes(); });
    const size_t place = text.find(directory_.path());
    return place == std::string::npos ? text : text.erase(place, directory_.path().size() + 1);
  }

  TempDir directory_;
};

const json kBart = {{"early_stopping", true}, {"length_penalty", 2.0}, {"max_length", 142},
                    {"min_length", 56},       {"num_beams", 4},        {"no_repeat_ngram_size", 3}};

TEST_F(SummarySettings, AreDefaultsOfSummariesOnly) {
  use_task("bart", kBart);
  const TranslateOptions summary = options(), translation = default_translate_options(run());
  EXPECT_EQ(summary.early_stopping, EarlyStopping::at_beam);
  EXPECT_EQ(summary.length_penalty, 2);
  EXPECT_EQ(summary.max_length, 140);  // without the start token and the forced first one
  EXPECT_EQ(summary.min_length, 54);
  EXPECT_EQ(summary.beam, 4);
  EXPECT_EQ(summary.no_repeat_ngram, 3);
  EXPECT_EQ(summary.source_prefix, "");
  EXPECT_EQ(summary.sentences, Sentences::line);
  EXPECT_EQ(summary.protected_parts, ProtectedParts::none);
  use("bart", json::object());
  EXPECT_EQ(options().beam, translation.beam);
  EXPECT_EQ(translation.beam, default_translate_options(run()).beam);
  EXPECT_EQ(translation.max_length, default_translate_options(run()).max_length);
  EXPECT_EQ(read_summary_defaults(RunDirectory(run())), DecodingDefaults());
}

TEST_F(SummarySettings, OfATaskReplaceThoseOfTheModel) {
  use_task("t5", {{"num_beams", 2}, {"min_length", 0}});
  testing::spill(model() + "/generation_config.json",
                 R"({"decoder_start_token_id": 0, "eos_token_id": 1, "num_beams": 6, "min_length": 9, "max_length": 30,
                     "early_stopping": "never"})");
  const TranslateOptions summary = options();
  EXPECT_EQ(summary.beam, 2);
  EXPECT_EQ(summary.min_length, 0);
  EXPECT_EQ(summary.max_length, 29);
  EXPECT_EQ(summary.early_stopping, EarlyStopping::never);
  EXPECT_EQ(default_translate_options(run()).beam, 6);
  EXPECT_EQ(default_translate_options(run()).min_length, 8);
}

TEST_F(SummarySettings, HaveThePrefixOfTheTaskOrElseOfTheModel) {
  const json tasks = {{"summarization", {{"prefix", "summarize: "}}},
                      {"translation_en_to_de", {{"prefix", "translate English to German: "}, {"num_beams", "many"}}}};
  use("t5", {{"task_specific_params", tasks}, {"prefix", "other: "}});
  EXPECT_EQ(options().source_prefix, "summarize: ");
  EXPECT_EQ(default_translate_options(run()).source_prefix, "");
  use("bart", {{"prefix", " "}, {"task_specific_params", nullptr}});
  EXPECT_EQ(options().source_prefix, " ");
  use("bart", {{"prefix", " "}, {"task_specific_params", {{"summarization", {{"prefix", ""}}}}}});
  EXPECT_EQ(options().source_prefix, "");
}

TEST_F(SummarySettings, OfOneDataSetCountWhereTheTaskHasNone) {
  const auto beam = [](int64_t n) { return json{{"num_beams", n}}; };
  use("pegasus", {{"task_specific_params", {{"summarization_xsum", beam(8)}, {"other", 3}}}});
  EXPECT_EQ(options().beam, 8);
  use("pegasus", {{"task_specific_params", {{"summarization_xsum", beam(8)}, {"summarization", beam(3)}}}});
  EXPECT_EQ(options().beam, 3);
  use("pegasus", {{"task_specific_params", {{"summarization_xsum", beam(8)}, {"summarization_cnn", beam(7)}}}});
  EXPECT_EQ(options().beam, 5);  // the program's
}

TEST_F(SummarySettings, ThatAreLeftAreNamed) {
  use_task("t5", {{"num_beams", 2}, {"do_sample", true}, {"diversity_penalty", 0.0}, {"invented", 1}});
  EXPECT_EQ(notes(), (std::vector<std::string>{"not taken over from config.json, task_specific_params.summarization: "
                                               "do_sample, invented"}));
}

TEST_F(SummarySettings, OfWrongTypesAndOutsideTheirRangesAreRefused) {
  const auto error_with = [&](const json& settings) {
    use_task("t5", settings);
    return error();
  };
  const std::string where = "model/config.json, task_specific_params.summarization: ";
  EXPECT_EQ(error_with({{"num_beams", "four"}}), where + "num_beams must be an integer");
  EXPECT_EQ(error_with({{"num_beams", 100000}}), where + "beam must be between 1 and 1024 (is 100000)");
  EXPECT_EQ(error_with({{"length_penalty", 1e300}}), where + "length_penalty must be between -10 and 10 (is 1e+300)");
  EXPECT_EQ(error_with({{"max_length", -1}}), where + "max_length must be at least 0 (is -1)");
  EXPECT_EQ(error_with({{"max_length", int64_t{1} << 62}}).substr(0, where.size() + 29),
            where + "max_length must be between 1 ");
  EXPECT_EQ(error_with({{"early_stopping", "soon"}}),
            where + "early_stopping must be true, false or never (is \"\\\"soon\\\"\")");
  EXPECT_EQ(error_with({{"prefix", 3}}), where + "prefix must be a string");
  EXPECT_EQ(error_with({{"prefix", std::string(1025, 'a')}}), where + "prefix must have at most 1024 bytes (has 1025)");
  EXPECT_EQ(error_with(std::string("beam")), "model/config.json: task_specific_params.summarization must be an object");
  use("t5", {{"task_specific_params", json::array({1})}});
  EXPECT_EQ(error(), "model/config.json: task_specific_params must be an object");
  use("t5", {{"prefix", json::array()}});
  EXPECT_EQ(error(), "model/config.json: prefix must be a string");
  use("t5", {{"prefix", std::string(1025, 'a')}});
  EXPECT_EQ(error(), "model/config.json: prefix must have at most 1024 bytes (has 1025)");
}

TEST_F(SummarySettings, HavePrefixesOfUpTo1024BytesOfUtf8) {
  use("t5", {{"prefix", std::string(1024, ' ')}});
  EXPECT_EQ(options().source_prefix.size(), 1024U);
  const std::string not_json = ": not valid JSON at byte ";
  for (const std::string name : {"summary.json", "decoding.json"}) {
    testing::spill(run() + "/" + name, "{\"source_prefix\": \"a\xff\"}");
    const std::string error = error_of([&] { default_summary_options(run()); });
    EXPECT_TRUE(error.starts_with(run() + "/" + name + not_json)) << error;
  }
  testing::spill(model() + "/config.json", "{\"model_type\": \"t5\", \"prefix\": \"a\xff\"}");
  EXPECT_TRUE(error().starts_with("model/config.json" + not_json)) << error();
}

TEST_F(SummarySettings, OfModelsOfSentencesAreNotRead) {
  use("opus", {{"prefix", " "}, {"task_specific_params", 3}});
  EXPECT_EQ(notes(), std::vector<std::string>());
  EXPECT_FALSE(std::filesystem::exists(run() + "/summary.json"));
  const std::string error = error_of([&] { default_summary_options(run()); });
  EXPECT_NE(error.find("run translates sentences (sentences is auto); expected a model of whole texts"),
            std::string::npos)
      << error;
}

TEST_F(SummarySettings, StayInAQuantizedRunAndAreCheckedWhenRead) {
  use_task("t5", kBart);
  notes();
  EXPECT_EQ(default_summary_options(quantize_run(run(), "", 8).out).min_length, 55);
  const auto error_with = [&](const std::string& text) {
    testing::spill(run() + "/summary.json", text);
    return error_of([&] { default_summary_options(run()); });
  };
  EXPECT_NE(error_with(R"({"beam": 0})").find("summary.json: beam must be between 1 and 1024 (is 0)"),
            std::string::npos);
  EXPECT_NE(error_with(R"({"prefix": ""})").find("summary.json: "), std::string::npos);
  const std::string long_prefix = json({{"source_prefix", std::string(1025, 'a')}}).dump();
  const std::string too_long = "source_prefix must have at most 1024 bytes (has 1025)";
  EXPECT_EQ(error_with(long_prefix), run() + "/summary.json: " + too_long);
  EXPECT_NE(error_with(R"({"sentences": "auto"})").find("translates sentences"), std::string::npos);
  testing::spill(run() + "/decoding.json", long_prefix);
  EXPECT_EQ(error_of([&] { default_translate_options(run()); }), run() + "/decoding.json: " + too_long);
}

TEST_F(SummarySettings, PrefixesAreTokenizedWithTheText) {
  use("t5", json::object());
  notes();
  const Translator translator(run());
  TranslateOptions with = default_summary_options(run());
  with.beam = 1, with.max_length = 4;
  const TranslateOptions without = with;
  with.source_prefix = "the dog: ";
  const Translation found = translator.translate({"the cat"}, with).front();
  EXPECT_EQ(found.source, "the cat");
  EXPECT_EQ(found.source_prefix, "the dog: ");
  EXPECT_EQ(translator.score({"the cat"}, {"the"}, with).front().source_prefix, "the dog: ");
  EXPECT_EQ(found.source_tokens, translator.translate({"the dog: the cat"}, without).front().source_tokens);
  EXPECT_EQ(found.text(), translator.translate({"the dog: the cat"}, without).front().text());
  EXPECT_EQ(translator.translate({" "}, with).front().text(), translator.translate({" "}, without).front().text());
  EXPECT_EQ(translator.score({"the cat"}, {"the"}, with).front().hypotheses.front().log_probability,
            translator.score({"the dog: the cat"}, {"the"}, without).front().hypotheses.front().log_probability);
  EXPECT_EQ(error_of([&] { translator.score({" "}, {"the"}, with); }), "source 1 is empty");
  with.source_prefix = std::string(1025, ' ');
  EXPECT_EQ(error_of([&] { translator.translate({"a"}, with); }),
            "source_prefix must have at most 1024 bytes (has 1025)");
  with.source_prefix = "a\xff";
  EXPECT_EQ(error_of([&] { translator.translate({"a"}, with); }), "source_prefix: byte 2 is not valid UTF-8");
}

}  // namespace
}  // namespace qkv
