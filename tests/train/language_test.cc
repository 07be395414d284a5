// A language model learns its text; runs can be resumed and do not depend on the number of threads.
#include "qkv/language.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/train/small_language.h"

namespace qkv::testing {
namespace {

TEST(Language, InterruptedTrainingEndsWithTheSameBytes) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_language();
  recipe.model.dropout.residual = 0.1;
  recipe.training.max_steps = 60;  // more than one epoch
  recipe.training.eval_every = 20;
  const std::string whole = directory / "whole", parts = directory / "parts";
  with_threads(1, [&] { return train_small_language(text, recipe, whole); });
  with_threads(3, [&] {
    for (const int64_t steps : {7, 45, 60}) {
      int64_t done = 0;
      TrainingObserver observer;
      observer.on_step = [&](const StepReport& r) { done = r.step; };
      observer.should_stop = [&] { return done == steps && steps < 60; };
      EXPECT_EQ(train_language_model({{text}}, recipe, parts, observer), steps == 60);
    }
    return 0;
  });
  for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"})
    EXPECT_TRUE(slurp(whole + file) == slurp(parts + file)) << file;

  LanguageRecipe other = recipe;
  other.language.dev_share = 0.2;
  EXPECT_EQ(
      error_of([&] { train_small_language(text, other, parts); }),
      parts + ": dev_share was 0.1 when this run was started and is now 0.2; use the same value or another directory");
}

// A step takes longer than a billionth of a minute.
TEST(Language, StatesAreAlsoSavedByTime) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_language();
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
    EXPECT_TRUE(train_language_model({{text}}, recipe, run, observer));
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
    EXPECT_TRUE(slurp(often + file) == slurp(seldom + file)) << file;

  recipe.training.max_steps = 6;  // may differ when the run is resumed
  recipe.training.save_minutes = 0;
  EXPECT_EQ(saved_before(often), std::vector<std::string>(2, "4"));
}

TEST(Language, EvaluationsReportASampleOnRequest) {
  const TempDir directory;
  LanguageRecipe recipe = small_language();
  recipe.training.max_steps = recipe.training.eval_every = 2;
  recipe.language.sample_tokens = 20;
  std::vector<std::string> lines;
  TrainingObserver observer;
  observer.on_message = [&](const std::string& line) { lines.push_back(line); };
  train_language_model({{write_text(directory)}}, recipe, directory / "run", observer);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_TRUE(lines[lines.size() - 2].starts_with("sample:\n")) << lines[lines.size() - 2];
}

TEST(Language, RefusesInvalidText) {
  const TempDir directory;
  const std::string text = directory / "text.txt", out = directory / "run";
  const auto error = [&](const std::string& content, const LanguageRecipe& recipe) {
    spill(text, content);
    const std::string message = error_of([&] { train_language_model({{text}}, recipe, out, {}); });
    EXPECT_FALSE(std::filesystem::exists(out));
    return message;
  };
  EXPECT_EQ(error("", small_language()), text + ": contains no text");
  EXPECT_EQ(error("<|endoftext|>\n", small_language()), text + ": contains no text");
  EXPECT_EQ(error("a", small_language()), text + ": is too short to set aside 0.1 of it (dev_share)");
  EXPECT_EQ(error("ab\xFF", small_language()), text + ": byte 3 is not valid UTF-8; use unit = bytes for such a file");
  LanguageRecipe recipe = small_language();
  recipe.language.dev_share = 1;
  EXPECT_EQ(error("abc", recipe), "training: dev_share must be above 0 and below 1 (is 1)");
  EXPECT_EQ(error_of([&] { train_language_model({}, small_language(), out, {}); }),
            "training: text must name at least one file");
  EXPECT_EQ(error_of([&] { train_language_model({{directory / "none"}}, small_language(), out, {}); }),
            (directory / "none") + ": cannot be opened: No such file or directory");
}

TEST(Language, ErrorsNameTheBrokenRun) {
  const TempDir directory;
  LanguageRecipe recipe = small_language();
  recipe.training.max_steps = 1;
  const std::string out = directory / "run";
  train_small_language(write_text(directory), recipe, out);
  EXPECT_NO_THROW(load_run<LanguageRun>(out));
  spill(out + "/vocabulary.json", "[\"a\", \"b\"]");
  EXPECT_EQ(error_of([&] { load_run<LanguageRun>(out); }),
            out + "/config.json: target_vocab must be 3, the number of tokens of the vocabulary (is 22)");
  std::filesystem::remove(out + "/language.json");
  EXPECT_EQ(error_of([&] { load_run<LanguageRun>(out); }),
            out + "/language.json: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace qkv::testing
