// A language model learns its text; runs can be resumed and do not depend on the number of threads.
#include "qkv/language.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/random.h"
#include "io/run.h"
#include "io/safetensors.h"
#include "qkv/generator.h"
#include "tests/support/errors.h"
#include "tests/support/generate_options.h"
#include "tests/support/kernels.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::TempDir;
using testing::with_threads;

// Documents "<digit>:" followed by nine copies of a letter that depends only on the digit.
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

// Returns the bits per byte of the last evaluation.
double train(const std::string& text, const LanguageRecipe& recipe, const std::string& out) {
  double bits = -1;
  TrainingObserver observer;
  observer.on_evaluation = [&](const EvaluationReport& r) { bits = r.candidates.front().measures.back().value; };
  EXPECT_TRUE(train_language({{text}}, recipe, out, observer));
  return bits;
}

// A random digit has log2 10 = 3.32 bits in each document of eleven bytes; the rest is determined.
TEST(Language, LearnsAllThatIsNotRandom) {
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
    const Generation found = generator.generate("7:", testing::greedy());
    EXPECT_EQ(found.text, "hhhhhhhhh");
    EXPECT_EQ(found.end, GenerationEnd::document);
    EXPECT_EQ(found.tokens.size(), 9u);
    EXPECT_EQ(generator.generate("7:", testing::greedy(256, {"xx", "hhh"})).text, "");
    std::string emitted;
    GenerateOptions options = testing::greedy(5, {"hx"});
    options.on_text = [&](std::string_view piece) { emitted += piece; };
    EXPECT_EQ(generator.generate("7:", options).end, GenerationEnd::length);
    EXPECT_EQ(emitted, "hhhhh");
  }
}

TEST(Language, LearnsSentencePiecesOfTheText) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_recipe();
  merge_recipe_json(recipe, R"({"unit": "pieces", "vocab_size": 300})", "");
  const std::string out = directory / "run";
  EXPECT_LT(train(text, recipe, out), 1.3 * 3.32 / 11);
  EXPECT_EQ(Generator(out).generate("7:", testing::greedy()).text, "hhhhhhhhh");

  // Another model with the same pieces.
  const LanguageFiles files = {{text}, {}, out + "/tokenizer.model"};
  recipe.training.max_steps = 1;
  EXPECT_TRUE(train_language(files, recipe, directory / "other", {}));
  EXPECT_TRUE(testing::slurp(out + "/tokenizer.model") == testing::slurp((directory / "other") + "/tokenizer.model"));
  set_recipe_option(recipe, "unit", "bytes");
  EXPECT_EQ(error_of([&] { train_language(files, recipe, directory / "third", {}); }),
            "training: a tokenizer requires unit = pieces (unit is bytes)");
}

TEST(Language, ModernArchitecturesLearnTheText) {
  const TempDir directory;
  LanguageRecipe recipe = small_recipe();
  merge_recipe_json(recipe, R"({"norm": "rms", "positions": "rotary", "gated_ffn": true, "activation": "silu",
      "heads": 4, "key_value_heads": 2, "query_key_norm": true, "window": 12, "dropout": 0.05})",
                    "");
  EXPECT_LT(train(write_text(directory), recipe, directory / "run"), 1.3 * 3.32 / 11);
  EXPECT_EQ(Generator(directory / "run").generate("3:", testing::greedy()).text, "ddddddddd");
}

TEST(Language, InterruptedTrainingEndsWithTheSameBytes) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_recipe();
  recipe.model.dropout.residual = 0.1;
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
  EXPECT_EQ(
      error_of([&] { train(text, other, parts); }),
      parts + ": dev_share was 0.1 when this run was started and is now 0.2; use the same value or another directory");
}

// A step takes longer than a billionth of a minute.
TEST(Language, StatesAreAlsoSavedByTime) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_recipe();
  recipe.training.schedule = Schedule::constant;
  recipe.training.max_steps = 4;
  recipe.training.eval_every = recipe.training.save_every = 0;
  // Returns the last saved step, or "none", before each step ends.
  const auto saved_before = [&](const std::string& run) {
    std::vector<std::string> steps;
    TrainingObserver observer;
    observer.on_step = [&](const StepReport&) {
      const std::string state = run + "/checkpoints/state.safetensors";
      steps.push_back(std::filesystem::exists(state) ? Safetensors::open(state).metadata().at("step") : "none");
    };
    EXPECT_TRUE(train_language({{text}}, recipe, run, observer));
    return steps;
  };
  for (const double minutes : {0.0, 1e6}) {
    recipe.training.save_minutes = minutes;
    EXPECT_EQ(saved_before(directory / fmt::format("run-{}", minutes)), std::vector<std::string>(4, "none"));
  }
  recipe.training.save_minutes = 1e-9;
  const std::string often = directory / "often", seldom = directory / "run-0";
  EXPECT_EQ(saved_before(often), (std::vector<std::string>{"none", "1", "2", "3"}));
  for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"})
    EXPECT_TRUE(testing::slurp(often + file) == testing::slurp(seldom + file)) << file;

  recipe.training.max_steps = 6;  // may differ when the run is resumed
  recipe.training.save_minutes = 0;
  EXPECT_EQ(saved_before(often), std::vector<std::string>(2, "4"));
}

TEST(Language, EvaluationsReportASampleOnRequest) {
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

TEST(Language, RefusesInvalidText) {
  const TempDir directory;
  const std::string text = directory / "text.txt", out = directory / "run";
  const auto error = [&](const std::string& content, const LanguageRecipe& recipe) {
    testing::spill(text, content);
    const std::string message = error_of([&] { train_language({{text}}, recipe, out, {}); });
    EXPECT_FALSE(std::filesystem::exists(out));
    return message;
  };
  EXPECT_EQ(error("", small_recipe()), text + ": contains no text");
  EXPECT_EQ(error("<|endoftext|>\n", small_recipe()), text + ": contains no text");
  EXPECT_EQ(error("a", small_recipe()), text + ": is too short to set aside 0.1 of it (dev_share)");
  EXPECT_EQ(error("ab\xFF", small_recipe()), text + ": byte 3 is not valid UTF-8; use unit = bytes for such a file");
  LanguageRecipe recipe = small_recipe();
  recipe.language.dev_share = 1;
  EXPECT_EQ(error("abc", recipe), "training: dev_share must be above 0 and below 1 (is 1)");
  EXPECT_EQ(error_of([&] { train_language({{directory / "none"}}, small_recipe(), out, {}); }),
            (directory / "none") + ": cannot be opened: No such file or directory");
}

TEST(Language, ErrorsNameTheBrokenRun) {
  const TempDir directory;
  LanguageRecipe recipe = small_recipe();
  recipe.training.max_steps = 1;
  const std::string out = directory / "run";
  train(write_text(directory), recipe, out);
  EXPECT_NO_THROW(load_run<LanguageRun>(out));
  testing::spill(out + "/vocabulary.json", "[\"a\", \"b\"]");
  EXPECT_EQ(error_of([&] { load_run<LanguageRun>(out); }),
            out + "/config.json: target_vocab must be 3, the number of tokens of the vocabulary (is 22)");
  std::filesystem::remove(out + "/language.json");
  EXPECT_EQ(error_of([&] { load_run<LanguageRun>(out); }),
            out + "/language.json: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace qkv
