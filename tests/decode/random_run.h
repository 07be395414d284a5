// A run directory with random weights and a vocabulary of a few lines.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/runs/run.h"
#include "tests/decode/searcher.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {

inline const std::vector<std::string> kText = {"the dog sees the cat", "a man reads a book .",
                                               "he sleeps in the garden", "the old cat sleeps", "a dog reads"};

// Writes the run and returns its path. `change` may set weights.
inline std::string make_random_run(const std::string& path,
                                   const std::function<void(Searcher&, const Tokenizer&)>& change = {},
                                   uint64_t seed = 1) {
  const Tokenizer tokenizer = Tokenizer::train(kText, {TokenizerKind::bpe, 60});
  Recipe recipe;
  recipe.model = config_of(tokenizer.size(), 30);
  const RunDirectory run(path);
  const TokenizerPair both{tokenizer, tokenizer};
  create_run(run, TranslatorRun{recipe.model, both, trained_translation(both, false)}, [](const RunDirectory&) {});
  Searcher s(recipe.model, seed);
  if (change) change(s, tokenizer);
  save_weights(run.model(), s.model.parameters(), s.model.parameters().values());
  return run.root();
}

}  // namespace qkv::testing
