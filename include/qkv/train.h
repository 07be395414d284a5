// Training a translation model from parallel text into a run directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/text.h"
#include "qkv/training.h"

namespace qkv {

// What becomes of the text; beside TrainingConfig in training.json of a run.
struct TextConfig {
  int64_t vocab_size = 10000;  // pieces of the tokeniser that is trained from the text
  TokenizerKind tokenizer = TokenizerKind::unigram;
  bool joint_vocabulary = true;  // one tokeniser for both languages
  bool lowercase = false;        // both sides, before anything else

  bool operator==(const TextConfig&) const = default;
};

template <class Visitor>
void visit_fields(TextConfig& c, Visitor&& visit) {
  visit("vocab_size", c.vocab_size, "pieces of the tokeniser trained from the text");
  visit("tokenizer", c.tokenizer, "kind of that tokeniser");
  visit("joint_vocabulary", c.joint_vocabulary, "one tokeniser for both languages");
  visit("lowercase", c.lowercase, "lower-case both sides");
}

// Throws Error, naming the value, for one that makes no sense.
void check(const TextConfig& config);

struct TranslationRecipe : Recipe {
  TextConfig text;
};

// "tiny" (d 128, 4 heads, ffn 256, 4 + 4 layers), "small" (d 256, 4, 1024, 6 + 6), "base" (d 512, 8, 2048, 6 + 6) or
// "tiny-modern": tiny with RMSNorm before every sub-layer, rotary positions, SwiGLU and no biases. Throws Error for
// another name.
TranslationRecipe translation_preset(const std::string& name);

struct TranslationFiles {
  std::vector<std::string> train, dev;             // two line-aligned files, or one file of source TAB target
  std::string source_tokenizer, target_tokenizer;  // existing SentencePiece models; trained from the text if empty
};

// Trains into the directory `out`; false if should_stop ended it early. A run that is there already is resumed where it
// was saved last, and ends with the same bytes as one that was never interrupted; it must have the recipe given, but
// for recompute and the limits max_*. Throws Error for text, options or files that will not do.
//   memory: where it is above 0, a new run gets the largest batch_tokens with which training takes so many bytes, and a
//   resumed one keeps its own. What is counted stands in docs/run-directory.md.
bool train_translation(const TranslationFiles& files, const TranslationRecipe& recipe, const std::string& out,
                       const TrainingObserver& observer, int64_t memory = 0);

}  // namespace qkv
