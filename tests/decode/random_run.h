// A run directory with random weights and a vocabulary of a few lines.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/runs/run.h"
#include "tests/decode/searcher.h"
#include "tests/support/temp_dir.h"
#include "text/stand_in_characters.h"

namespace qkv::testing {

inline const std::vector<std::string> kText = {"the dog sees the cat", "a man reads a book .",
                                               "he sleeps in the garden", "the old cat sleeps", "a dog reads"};

// Writes a run with this tokenizer and returns its path. `change` may set weights.
inline std::string make_random_run(const std::string& path, const Tokenizer& tokenizer,
                                   const TranslationConfig& translation,
                                   const std::function<void(Searcher&, const Tokenizer&)>& change, uint64_t seed) {
  Recipe recipe;
  recipe.model = config_of(tokenizer.size(), 30);
  const RunDirectory run(path);
  const TokenizerPair both{tokenizer, tokenizer};
  create_run(run, TranslatorRun{recipe.model, both, translation}, [](const RunDirectory&) {});
  Searcher s(recipe.model, seed);
  if (change) change(s, tokenizer);
  save_weights(run.model(), s.model.parameters(), s.model.parameters().values());
  return run.root();
}

// The same with the tokenizer of kText.
inline std::string make_random_run(const std::string& path,
                                   const std::function<void(Searcher&, const Tokenizer&)>& change = {},
                                   uint64_t seed = 1) {
  const Tokenizer tokenizer = Tokenizer::train(kText, {TokenizerKind::bpe, 60});
  return make_random_run(path, tokenizer, trained_translation({tokenizer, tokenizer}, false), change, seed);
}

// A run whose vocabulary has stand-ins and term marks, as if it was trained with them.
inline std::string make_stand_in_run(const std::string& path, uint64_t seed = 1) {
  TokenizerOptions options{TokenizerKind::bpe, 72};
  options.reserved.assign(kStandIns.begin(), kStandIns.end());
  options.reserved.insert(options.reserved.end(), kTermMarks.begin(), kTermMarks.end());
  const Tokenizer tokenizer = Tokenizer::train(kText, options);
  TranslationConfig translation = trained_translation({tokenizer, tokenizer}, false);
  add_stand_ins(translation);
  add_term_marks(translation, tokenizer);
  return make_random_run(path, tokenizer, translation, {}, seed);
}

}  // namespace qkv::testing
