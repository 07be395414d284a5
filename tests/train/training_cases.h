// A small model of each kind with its data, for a few steps of training.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/random.h"
#include "qkv/classifier_training.h"
#include "qkv/encoder.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {

// A kind of model with its data. `train` changes the recipe by JSON.
struct TrainingCase {
  std::string name;
  std::function<bool(const std::string& json, const std::string& out, const TrainingObserver& observer)> train;
};

inline constexpr const char* kSmallRecipe =
    R"({"d_model": 16, "heads": 2, "ffn": 16, "decoder_layers": 1, "max_length": 16,
    "batch_tokens": 64, "warmup_steps": 0, "learning_rate": 0.01, "dropout": 0.2, "max_epochs": 0, "eval_every": 0,
    "ema_decay": 0.9})";

inline std::string lines_of_sentences(int64_t n, uint64_t seed) {
  std::string text;
  for (const std::string& sentence : sentences(n, seed)) text += sentence + "\n";
  return text;
}

inline TrainingCase translation_case(const TempDir& directory) {
  for (const char* side : {"a", "b"}) {
    spill(directory / "train." + side, lines_of_sentences(200, 1));
    spill(directory / "dev." + side, lines_of_sentences(5, 2));
  }
  return {"translate", [&](const std::string& json, const std::string& out, const TrainingObserver& observer) {
            TranslationRecipe recipe = translation_preset("tiny");
            merge_recipe_json(recipe, kSmallRecipe, "");
            merge_recipe_json(recipe, R"({"encoder_layers": 1, "vocab_size": 60})", "");
            merge_recipe_json(recipe, json, "");
            const TranslationFiles files{
                {directory / "train.a", directory / "train.b"}, {directory / "dev.a", directory / "dev.b"}, "", ""};
            return train_translator(files, recipe, out, observer);
          }};
}

// `features`: whether the items have colours.
inline TrainingCase recommendation_case(const TempDir& directory, bool features = true) {
  Random random(3, Stream::test);
  std::string log, table = "item,colour\n";
  for (int64_t item = 0; item < 40; item++) table += fmt::format("{},{}\n", item, item % 8);
  for (int64_t user = 0; user < 80; user++)
    for (int64_t i = 0; i < 10; i++) log += fmt::format("{} {}\n", user, random.below(40));
  spill(directory / "log.txt", log);
  spill(directory / "items.csv", table);
  return {"recommend",
          [&directory, features](const std::string& json, const std::string& out, const TrainingObserver& observer) {
            RecommendationRecipe recipe = recommendation_preset("films");
            merge_recipe_json(recipe, kSmallRecipe, "");
            merge_recipe_json(recipe, R"({"schedule": "constant"})", "");
            merge_recipe_json(recipe, json, "");
            const std::string items = features ? directory / "items.csv" : "";
            return train_recommender({{directory / "log.txt"}, {}, "", items}, recipe, out, observer);
          }};
}

inline TrainingCase language_case(const TempDir& directory) {
  spill(directory / "text.txt", lines_of_sentences(300, 4));
  return {"lm", [&](const std::string& json, const std::string& out, const TrainingObserver& observer) {
            LanguageRecipe recipe = language_preset("lm-small");
            merge_recipe_json(recipe, kSmallRecipe, "");
            merge_recipe_json(recipe, R"({"schedule": "constant"})", "");
            merge_recipe_json(recipe, json, "");
            return train_language_model({{directory / "text.txt"}}, recipe, out, observer);
          }};
}

// kSmallRecipe has decoder layers, which an encoder lacks.
inline constexpr const char* kSmallEncoder =
    R"({"d_model": 16, "heads": 2, "ffn": 16, "encoder_layers": 1, "max_length": 16, "lines": true, "vocab_size": 60,
    "batch_tokens": 128, "warmup_steps": 0, "learning_rate": 0.01, "dropout": 0.2, "max_epochs": 0, "eval_every": 0,
    "ema_decay": 0.9, "schedule": "constant"})";

inline TrainingCase encoder_case(const TempDir& directory) {
  spill(directory / "lines.txt", lines_of_sentences(300, 4));
  return {"encoder", [&](const std::string& json, const std::string& out, const TrainingObserver& observer) {
            EncoderRecipe recipe = encoder_preset("encoder-tiny");
            merge_recipe_json(recipe, kSmallEncoder, "");
            merge_recipe_json(recipe, json, "");
            return train_encoder({{directory / "lines.txt"}}, recipe, out, observer);
          }};
}

// Values for a classifier that is trained for a few steps.
inline constexpr const char* kSmallClassifier =
    R"({"examples": 12, "batch_tokens": 64, "warmup_steps": 0, "learning_rate": 0.01, "dropout": 0.2, "max_epochs": 0,
    "ema_decay": 0.9, "schedule": "constant"})";

// Starts from an encoder that is trained for a step.
inline TrainingCase classifier_case(const TempDir& directory) {
  spill(directory / "lines.txt", lines_of_sentences(300, 4));
  EncoderRecipe recipe = encoder_preset("encoder-tiny");
  merge_recipe_json(recipe, kSmallEncoder, "");
  merge_recipe_json(recipe, R"({"max_steps": 1})", "");
  EXPECT_TRUE(train_encoder({{directory / "lines.txt"}}, recipe, directory / "initial", {}));
  std::string rows;
  for (const std::string& sentence : sentences(100, 5))
    rows += fmt::format("{}\t{}\n", sentence, sentence.size() > 30 ? "long" : "short");
  spill(directory / "rows.tsv", rows);
  return {"classify", [&](const std::string& json, const std::string& out, const TrainingObserver& observer) {
            ClassifierRecipe classifier = classifier_fine_tuning(directory / "initial");
            merge_recipe_json(classifier, kSmallClassifier, "");
            merge_recipe_json(classifier, json, "");
            const ClassifierFiles files{.train = directory / "rows.tsv", .init = directory / "initial"};
            return train_classifier(files, classifier, out, observer);
          }};
}

// Trains and returns the reports of the steps, which end after `stop` steps of this call unless it is 0.
inline std::vector<StepReport> steps_of(const TrainingCase& c, const std::string& json, const std::string& out,
                                        size_t stop = 0) {
  std::vector<StepReport> steps;
  TrainingObserver observer;
  observer.on_step = [&](const StepReport& step) { steps.push_back(step); };
  observer.should_stop = [&] { return steps.size() == stop; };
  EXPECT_EQ(c.train(json, out, observer), stop == 0);
  return steps;
}

inline void expect_same_run(const std::string& a, const std::string& b) {
  for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"}) {
    EXPECT_NE(slurp(a + file), "");
    EXPECT_TRUE(slurp(a + file) == slurp(b + file)) << b << file;
  }
}

}  // namespace qkv::testing
