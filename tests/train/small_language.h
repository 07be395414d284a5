// A small language model, and a text that it learns in seconds.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/random.h"
#include "qkv/language.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {

// Documents "<digit>:" followed by nine copies of a letter that depends only on the digit.
inline std::string write_text(const TempDir& directory) {
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

inline LanguageRecipe small_language() {
  LanguageRecipe recipe = language_preset("lm-small");
  merge_recipe_json(recipe, R"({"d_model": 32, "heads": 2, "ffn": 64, "decoder_layers": 2, "max_length": 16,
      "batch_tokens": 128, "learning_rate": 0.01, "warmup_steps": 10, "max_steps": 150, "eval_every": 50})",
                    "");
  return recipe;
}

// Returns the bits per byte of the last evaluation.
inline double train_small_language(const std::string& text, const LanguageRecipe& recipe, const std::string& out) {
  double bits = -1;
  TrainingObserver observer;
  observer.on_evaluation = [&](const EvaluationReport& r) { bits = r.candidates.front().measures.back().value; };
  EXPECT_TRUE(train_language_model({{text}}, recipe, out, observer));
  return bits;
}

}  // namespace qkv::testing
