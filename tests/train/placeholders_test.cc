// Training of a translator with placeholders and inline terms.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/runs/run.h"
#include "qkv/train.h"
#include "qkv/translator.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "text/stand_in_characters.h"

namespace qkv::testing {
namespace {

class TrainedPlaceholders : public ::testing::Test {
 protected:
  TrainedPlaceholders() {
    std::string pairs;
    for (int i = 0; i < 20; i++) pairs += "Anna sees {a} and the dog .\tAnna sieht {a} und den Hund .\n";
    spill(train_, pairs);
    spill(dev_, "A dog .\tein Hund .\n");
  }

  TranslationRecipe recipe(const std::string& options) const {
    TranslationRecipe recipe = translation_preset("tiny");
    merge_recipe_json(
        recipe,
        R"({"d_model": 8, "heads": 2, "ffn": 8, "encoder_layers": 1, "decoder_layers": 1, "max_length": 64,
                          "vocab_size": 50, "batch_tokens": 64, "max_steps": 2, "max_epochs": 0, "warmup_steps": 0,
                          "learning_rate": 0.01})",
        "");
    merge_recipe_json(recipe, options, "");
    return recipe;
  }

  void train(const TranslationRecipe& recipe, const std::string& out, const std::string& init = "",
             const std::string& tokenizer = "") const {
    EXPECT_TRUE(train_translator({{train_}, {dev_}, tokenizer, "", init}, recipe, out, {}));
  }

  TempDir directory_;
  const std::string train_ = directory_ / "train.tsv", dev_ = directory_ / "dev.tsv", run_ = directory_ / "run";
};

TEST_F(TrainedPlaceholders, AreKeptInTheRun) {
  train(recipe(R"({"placeholders": true, "inline_terms": true})"), run_);
  const TranslatorRun run = load_run<TranslatorRun>(run_);
  EXPECT_EQ(run.translation.stand_ins, std::vector<std::string>(kStandIns.begin(), kStandIns.end()));
  EXPECT_EQ(run.translation.term_marks, std::vector<std::string>(kTermMarks.begin(), kTermMarks.end()));
  EXPECT_EQ(run.translation.never, run.translation.term_marks);
  EXPECT_EQ(run.tokens.reserved.size(), kStandIns.size() + kTermMarks.size());

  const Translator translator(run_);
  TranslateOptions options;
  options.glossary = "dog\tHund\n";
  const Translation found = translator.translate({"the dog sees {b} and {c} ."}, options).front();
  for (const std::string part : {"{b}", "{c}"}) {
    EXPECT_NE(found.text().find(part), std::string::npos) << found.text();
    EXPECT_EQ(found.text().find(part), found.text().rfind(part)) << found.text();
  }
}

TEST_F(TrainedPlaceholders, AreNotInOtherRuns) {
  train(recipe("{}"), run_);
  const TranslatorRun run = load_run<TranslatorRun>(run_);
  EXPECT_TRUE(run.translation.stand_ins.empty() && run.translation.term_marks.empty());
  EXPECT_FALSE(run.tokenizers.source.id(kStandIns[0]));
}

TEST_F(TrainedPlaceholders, MayBeOfTwoVocabularies) {
  train(recipe(R"({"placeholders": true, "joint_vocabulary": false})"), run_);
  const TranslatorRun run = load_run<TranslatorRun>(run_);
  EXPECT_EQ(run.tokens.stand_ins.size(), kStandIns.size());
  EXPECT_NE(run.tokenizers.source.serialized(), run.tokenizers.target.serialized());
}

TEST_F(TrainedPlaceholders, StayWithARunThatIsTrainedFurther) {
  train(recipe(R"({"placeholders": true})"), run_);
  TranslationRecipe further = translation_fine_tuning(run_);
  EXPECT_TRUE(further.text.placeholders);
  merge_recipe_json(further, R"({"batch_tokens": 64, "max_steps": 1, "warmup_steps": 0})", "");
  train(further, directory_ / "further", run_);
  EXPECT_EQ(load_run<TranslatorRun>(directory_ / "further").tokens.stand_ins.size(), kStandIns.size());
  further.text.inline_terms = true;
  expect_contains(error_of([&] { train(further, directory_ / "other", run_); }), "inline_terms is false, here true");
}

TEST_F(TrainedPlaceholders, NeedATokenizerThatHasThem) {
  train(recipe("{}"), run_);
  const std::string error = error_of(
      [&] { train(recipe(R"({"placeholders": true})"), directory_ / "other", "", run_ + "/tokenizer.model"); });
  expect_contains(error, "training: stand_ins is ");
  expect_contains(error, "which is not in the vocabulary");
}

TEST_F(TrainedPlaceholders, OfAResumedRunAreTheSame) {
  const std::string options = R"({"placeholders": true, "inline_terms": true, "eval_every": 2, "save_every": 2})";
  TranslationRecipe whole = recipe(options);
  whole.training.max_steps = 6;
  train(whole, run_);
  const std::string resumed = directory_ / "resumed";
  for (const int64_t steps : {2, 6}) {
    whole.training.max_steps = steps;
    train(whole, resumed);
  }
  for (const char* file : {"/model.safetensors", "/translation.json", "/text.json", "/tokenizer.model"})
    EXPECT_EQ(slurp(run_ + file), slurp(resumed + file)) << file;
}

}  // namespace
}  // namespace qkv::testing
