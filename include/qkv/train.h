// Training a translator from parallel text.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "qkv/text.h"
#include "qkv/training.h"

namespace [[gnu::visibility("default")]] qkv {

// How parallel text is read, text.json of a run.
struct TextConfig {
  int64_t vocab_size = 10000;
  TokenizerKind tokenizer = TokenizerKind::unigram;
  bool joint_vocabulary = true;
  bool lowercase = false;
  std::string source_language = "", target_language = "";
  bool placeholders = false;  // Post et al., "An Exploration of Placeholding in NMT" (2019)
  bool inline_terms = false;  // Dinu et al., "Training NMT to Apply Terminology Constraints" (2019)

  bool operator==(const TextConfig&) const = default;
};

// Calls visit(name, member, field) for every field. This list defines text.json and the command line.
template <class Visitor>
void visit_fields(TextConfig& c, Visitor&& visit) {
  visit("vocab_size", c.vocab_size,
        {"Number of pieces of a tokenizer that is trained from the text", "data", at_least(4), kCommon});
  visit("tokenizer", c.tokenizer, {"Algorithm of a tokenizer that is trained from the text", "data"});
  visit("joint_vocabulary", c.joint_vocabulary, {"Use one tokenizer for both languages", "data"});
  visit("lowercase", c.lowercase, {"Convert both sides to lower case first", "data"});
  visit("source_language", c.source_language,
        {"Language of the source, to fine-tune a model with several: its code, such as en", "data"});
  visit("target_language", c.target_language,
        {"Language of the target, to fine-tune a model with several: its code, such as de", "data"});
  visit("placeholders", c.placeholders,
        {"Teach characters that stand for protected parts, such as addresses, so that translations place them",
         "data"});
  visit("inline_terms", c.inline_terms,
        {"Train with translations of terms inserted in the source, so that the model reads glossary terms there", "data"});
}

// Throws Error, naming the field, for a value outside its range.
void check(const TextConfig& config);

struct TranslationRecipe : Recipe {
  TextConfig text;
  // If true, a new run chooses warmup_steps, learning_rate and cooldown that fit its limits (docs/run-directory.md)
  // unless `given` names one of schedule, warmup_steps and cooldown. set_recipe_option and merge_recipe_json add the
  // names that they set. True in recipes of translation_recipe.
  bool fit = false;
  std::set<std::string> given = {};
};

// Returns a preset; throws Error for an unknown name.
//   "tiny"         d_model 128, 4 heads, ffn 256, 4 + 4 layers
//   "small"        d_model 256, 4 heads, ffn 1024, 6 + 6 layers
//   "base"         d_model 512, 8 heads, ffn 2048, 6 + 6 layers: the base model of Vaswani et al. (2017)
//   "tiny-modern"  "tiny" with RMSNorm before every sublayer, rotary positions, SwiGLU and no biases
TranslationRecipe translation_preset(const std::string& name);
inline constexpr const char* kTranslationPreset = "tiny";  // the usual one

// Returns a recipe for fine-tuning a run: its model and text configuration, and training values for fine-tuning
// (docs/fine-tuning.md). No other value of the model than dropout may be changed.
TranslationRecipe translation_fine_tuning(const std::string& run);

// Returns a preset or the recipe for fine-tuning a run, with the values of the choice. Throws Error for invalid values,
// and for a preset next to a run to fine-tune.
TranslationRecipe translation_recipe(const RecipeChoice& choice);

struct TranslationFiles {
  std::vector<std::string> train, dev;             // two line-aligned files, or one file of lines "source TAB target"
  std::string source_tokenizer, target_tokenizer;  // SentencePiece models; "" trains a tokenizer from the text
  std::string init = {};  // a run whose weights, tokenizers and special tokens training starts from; "": none
};

// Trains a translator and writes it to the run directory `out`. Returns false if should_stop ended training early.
//
// If `out` is a run, training resumes from its last saved state and ends with the same bytes as an uninterrupted run.
// The recipe must then be the same except for recompute, patience, max_epochs, max_minutes, save_minutes and, unless
// the schedule is a cosine, max_steps; it keeps values that were chosen for the limits of the run. Whether a limit is
// reached depends on the values of this call. A run has at least one step, whatever max_minutes is. memory: if above 0,
// a new run gets the largest batch_tokens with which training takes at most this many bytes (docs/run-directory.md
// describes what is counted); a resumed run keeps its own. It requires training on the CPU. With an initial run, which
// must have float32 weights, the recipe must have its shape and its text configuration. The new run does not need it
// afterwards. Throws Error for invalid text, options or files, and if another process trains the run.
bool train_translator(const TranslationFiles& files, const TranslationRecipe& recipe, const std::string& out,
                      const TrainingObserver& observer, int64_t memory = 0, const RankOptions& ranks = {});

}  // namespace qkv
