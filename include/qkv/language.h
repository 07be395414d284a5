// Training a language model from plain text: a decoder-only Transformer that predicts the next token, as in Radford et
// al., "Language Models are Unsupervised Multitask Learners" (2019).
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/text.h"
#include "qkv/training.h"

namespace [[gnu::visibility("default")]] qkv {

// The unit of text that is one token: a character (a code point of the training text), a byte, or a SentencePiece
// piece. Imported models may also have the pieces of a tokenizer.json: byte-level BPE (byte_pieces), or
// WordPiece and all others (word_pieces).
enum class TextUnit { characters, bytes, pieces, byte_pieces, word_pieces };
constexpr std::array<std::string_view, 5> names_of(TextUnit) {
  return {"characters", "bytes", "pieces", "byte_pieces", "word_pieces"};
}

// How plain text is read, language.json of a run.
struct LanguageConfig {
  TextUnit unit = TextUnit::characters;
  int64_t vocab_size = 4096;
  TokenizerKind tokenizer = TokenizerKind::bpe;
  std::string start = "";
  std::vector<std::string> ends = {};
  std::string document_end = "<|endoftext|>";
  double dev_share = 0.1;
  int64_t sample_tokens = 0;

  bool operator==(const LanguageConfig&) const = default;
};

// Calls visit(name, member, field) for every field. This list defines language.json and the command line.
template <class Visitor>
void visit_fields(LanguageConfig& c, Visitor&& visit) {
  constexpr Range kShare = between(0, 1).without_min().without_max();
  visit("unit", c.unit,
        {"Unit of text that is one token (byte_pieces and word_pieces: imported models only)", "data", {}, kCommon});
  visit("vocab_size", c.vocab_size,
        {"Number of pieces of a tokenizer that is trained from the text, for unit pieces", "data", at_least(4)});
  visit("tokenizer", c.tokenizer, {"Algorithm of a tokenizer that is trained from the text", "data"});
  visit("start", c.start, {"Piece before a text; empty: the token that ends one", "data", {}, kInternal});
  visit("ends", c.ends, {"Pieces that end a text; none: the end token of the vocabulary", "data", {}, kInternal});
  visit("document_end", c.document_end,
        {"Separator between the documents of a file; empty: each file is one document", "data"});
  visit("dev_share", c.dev_share,
        {"Share of the text, at its end, that is used for evaluation if there is no dev text", "data", kShare});
  visit("sample_tokens", c.sample_tokens,
        {"Length in tokens of a text that each evaluation prints; 0 prints none", "checkpoints", at_least(0)});
}

// Throws Error, naming the field, for a value outside its range.
void check(const LanguageConfig& config);

struct LanguageRecipe : Recipe {
  LanguageConfig language;
  // As in TranslationRecipe. If `given` names max_epochs and not max_steps, the schedule cosine ends after max_epochs.
  bool fit = false;
  std::set<std::string> given = {};
};

// Returns a preset; throws Error for an unknown name.
//   "lm-small"  4 layers, d_model 128, 4 heads, 64 tokens: the size that nanoGPT suggests for a CPU
//   "lm-med"    6 layers, d_model 384, 6 heads, 256 tokens: nanoGPT's larger one
//   "gpt2"      12 layers, d_model 768, 12 heads, 1024 tokens
LanguageRecipe language_preset(const std::string& name);
inline constexpr const char* kLanguagePreset = "lm-small";  // the usual one

// Returns a recipe for fine-tuning a run: its model and unit of text, and training values for fine-tuning
// (docs/fine-tuning.md). No other value of the model than dropout may be changed.
LanguageRecipe language_fine_tuning(const std::string& run);

// Returns the recipe of a choice as translation_recipe does.
LanguageRecipe language_recipe(const RecipeChoice& choice);

struct LanguageFiles {
  std::vector<std::string> text;      // plain text
  std::vector<std::string> dev = {};  // text for evaluation; empty: the end of the text
  std::string tokenizer = "";         // a SentencePiece model, for unit pieces; "": trained from the text
  std::string init = "";              // a run whose weights, unit and tokenizer training starts from; "": none
};

// Trains a language model and writes it to the run directory `out`. Returns false if should_stop ended training early.
// A run is resumed, and an initial run is used, as by train_translator. Documents are cut into sequences of max_length
// tokens (of batch_tokens, if these are fewer), at different places in each epoch, and attention does not cross the
// start of a document. The text is held in memory, with 4 more bytes per token. Throws Error for invalid text, options
// or files.
bool train_language_model(const LanguageFiles& files, const LanguageRecipe& recipe, const std::string& out,
                          const TrainingObserver& observer, const RankOptions& ranks = {});

}  // namespace qkv
