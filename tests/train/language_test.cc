// A language model learns what comes next; its runs resume and do not depend on threads.
#include "qkv/language.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/random.h"
#include "io/language_run.h"
#include "qkv/generator.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::TempDir;
using testing::with_threads;

// Documents of "<digit>:" and then that digit's letter nine times: nothing but the digit tells the letter.
std::string write_text(const TempDir& directory) {
  const std::string path = directory / "text.txt";
  std::ofstream file(path);
  Random random(1, Stream::test);
  for (int i = 0; i < 300; i++) {
    const auto digit = static_cast<char>(random.below(10));
    file << static_cast<char>('0' + digit) << ':' << std::string(9, static_cast<char>('a' + digit))
         << "<|endoftext|>\n";
  }
  return path;
}

LanguageRecipe small_recipe() {
  LanguageRecipe recipe = language_preset("lm-small");
  merge_recipe_json(recipe, R"({"d_model": 32, "heads": 2, "ffn": 64, "decoder_layers": 2, "max_length": 16,
      "batch_tokens": 128, "learning_rate": 0.01, "warmup_steps": 10, "max_steps": 150, "eval_every": 50})",
                    "");
  return recipe;
}

// The last evaluation's bits per byte.
double train(const std::string& text, const LanguageRecipe& recipe, const std::string& out) {
  double bits = -1;
  TrainingObserver observer;
  observer.on_evaluation = [&](const EvaluationReport& r) { bits = r.candidates.front().measures.back().value; };
  EXPECT_TRUE(train_language({{text}}, recipe, out, observer));
  return bits;
}

// Ten digits are log2 10 = 3.32 bits in each document of eleven bytes; all else is known.
TEST(Language, LearnsAllButWhatNobodyKnows) {
  const TempDir directory;
  const std::string text = write_text(directory);
  for (const char* unit : {"characters", "bytes"}) {
    LanguageRecipe recipe = small_recipe();
    set_recipe_option(recipe, "unit", unit);
    const std::string out = directory / unit;
    const double bits = train(text, recipe, out);
    EXPECT_GT(bits, 0.9 * 3.32 / 11) << unit;
    EXPECT_LT(bits, 1.3 * 3.32 / 11) << unit;

    const Generator generator(out);
    const Generation found = generator.generate("7:", {.temperature = 0});
    EXPECT_EQ(found.text, "hhhhhhhhh");
    EXPECT_EQ(found.end, GenerationEnd::document);
    EXPECT_EQ(found.tokens.size(), 9u);
    EXPECT_EQ(generator.generate("7:", {.temperature = 0, .stop = {"xx", "hhh"}}).text, "");
    std::string told;
    GenerateOptions options = {.max_tokens = 5, .temperature = 0, .stop = {"hx"}};
    options.on_text = [&](std::string_view piece) { told += piece; };
    EXPECT_EQ(generator.generate("7:", options).end, GenerationEnd::length);
    EXPECT_EQ(told, "hhhhh");
  }
}

TEST(Language, LearnsPiecesOfItsText) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_recipe();
  merge_recipe_json(recipe, R"({"unit": "pieces", "vocab_size": 300})", "");
  const std::string out = directory / "run";
  EXPECT_LT(train(text, recipe, out), 1.3 * 3.32 / 11);
  EXPECT_EQ(Generator(out).generate("7:", {.temperature = 0}).text, "hhhhhhhhh");

  // The same pieces for another model.
  const LanguageFiles files = {{text}, {}, out + "/tokenizer.model"};
  recipe.training.max_steps = 1;
  EXPECT_TRUE(train_language(files, recipe, directory / "other", {}));
  EXPECT_TRUE(testing::slurp(out + "/tokenizer.model") == testing::slurp((directory / "other") + "/tokenizer.model"));
  set_recipe_option(recipe, "unit", "bytes");
  EXPECT_EQ(error_of([&] { train_language(files, recipe, directory / "third", {}); }),
            "training: a tokeniser is given and unit is bytes, wanted pieces");
}

TEST(Language, ModernModelsLearnItToo) {
  const TempDir directory;
  LanguageRecipe recipe = small_recipe();
  merge_recipe_json(recipe, R"({"norm": "rms", "positions": "rotary", "gated_ffn": true, "activation": "silu",
      "heads": 4, "key_value_heads": 2, "query_key_norm": true, "window": 12, "dropout": 0.05})",
                    "");
  EXPECT_LT(train(write_text(directory), recipe, directory / "run"), 1.3 * 3.32 / 11);
  EXPECT_EQ(Generator(directory / "run").generate("3:", {.temperature = 0}).text, "ddddddddd");
}

TEST(Language, InterruptedTrainingEndsWithTheSameBytes) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_recipe();
  recipe.model.dropout = 0.1;
  recipe.training.max_steps = 60;  // more than one epoch
  recipe.training.eval_every = 20;
  const std::string whole = directory / "whole", parts = directory / "parts";
  with_threads(1, [&] { return train(text, recipe, whole); });
  with_threads(3, [&] {
    for (const int64_t steps : {7, 45, 60}) {
      int64_t done = 0;
      TrainingObserver observer;
      observer.on_step = [&](const StepReport& r) { done = r.step; };
      observer.should_stop = [&] { return done == steps && steps < 60; };
      EXPECT_EQ(train_language({{text}}, recipe, parts, observer), steps == 60);
    }
    return 0;
  });
  for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"})
    EXPECT_TRUE(testing::slurp(whole + file) == testing::slurp(parts + file)) << file;

  LanguageRecipe other = recipe;
  other.language.dev_share = 0.2;
  EXPECT_EQ(error_of([&] { train(text, other, parts); }),
            parts + ": the run has dev_share 0.1, this command 0.2; give the same, or another --out");
}

TEST(Language, ASampleIsShownWhereAskedFor) {
  const TempDir directory;
  LanguageRecipe recipe = small_recipe();
  recipe.training.max_steps = recipe.training.eval_every = 2;
  recipe.language.sample_tokens = 20;
  std::vector<std::string> lines;
  TrainingObserver observer;
  observer.on_message = [&](const std::string& line) { lines.push_back(line); };
  train_language({{write_text(directory)}}, recipe, directory / "run", observer);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_TRUE(lines[lines.size() - 2].starts_with("sample:\n")) << lines[lines.size() - 2];
}

TEST(Language, RefusesTextThatWillNotDo) {
  const TempDir directory;
  const std::string text = directory / "text.txt", out = directory / "run";
  const auto error = [&](const std::string& content, const LanguageRecipe& recipe) {
    testing::spill(text, content);
    const std::string message = error_of([&] { train_language({{text}}, recipe, out, {}); });
    EXPECT_FALSE(std::filesystem::exists(out));
    return message;
  };
  EXPECT_EQ(error("", small_recipe()), text + ": holds no text");
  EXPECT_EQ(error("<|endoftext|>\n", small_recipe()), text + ": holds no text");
  EXPECT_EQ(error("a", small_recipe()), text + ": is too short to keep 0.1 of it aside");
  EXPECT_EQ(error("ab\xFF", small_recipe()), text + ": byte 3 is not valid UTF-8, wanted text, or --unit bytes");
  LanguageRecipe recipe = small_recipe();
  recipe.language.dev_share = 1;
  EXPECT_EQ(error("abc", recipe), "training: dev_share is 1, wanted above 0 and below 1");
  EXPECT_EQ(error_of([&] { train_language({{directory / "none"}}, small_recipe(), out, {}); }),
            (directory / "none") + ": cannot be opened: No such file or directory");
}

TEST(Language, ABrokenRunIsNamed) {
  const TempDir directory;
  LanguageRecipe recipe = small_recipe();
  recipe.training.max_steps = 1;
  const std::string out = directory / "run";
  train(write_text(directory), recipe, out);
  EXPECT_NO_THROW(load_language_model(out));
  testing::spill(out + "/vocabulary.json", "[\"a\", \"b\"]");
  EXPECT_EQ(error_of([&] { load_language_model(out); }),
            out + "/config.json: target_vocab is 22, wanted 3, the tokens of its text");
  std::filesystem::remove(out + "/language.json");
  EXPECT_EQ(error_of([&] { load_language_model(out); }),
            out + ": holds no language.json, wanted the run of a language model");
}

}  // namespace
}  // namespace qkv
