// Training an encoder from plain text by masked language modelling: some tokens are masked, and the model predicts them
// from both sides. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding"
// (2019). The run embeds texts (qkv/embedder.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "qkv/text.h"
#include "qkv/training.h"

namespace [[gnu::visibility("default")]] qkv {

// How an encoder reads and masks the text that it is trained on, encoder.json of its run.
struct EncoderConfig {
  int64_t vocab_size = 8000;
  TokenizerKind tokenizer = TokenizerKind::unigram;
  bool lowercase = false;
  bool lines = false;
  std::string document_end = "<|endoftext|>";
  double dev_share = 0.1;
  double mask_share = 0.15;
  double mask_token_share = 0.8, random_token_share = 0.1;
  bool whole_words = false;
  int64_t mask_span = 1;

  bool operator==(const EncoderConfig&) const = default;
};

// Calls visit(name, member, field) for every field. This list defines encoder.json and the command line.
template <class Visitor>
void visit_fields(EncoderConfig& c, Visitor&& visit) {
  constexpr Range kShare = between(0, 1).without_min().without_max();
  visit("vocab_size", c.vocab_size,
        {"Number of pieces of the tokenizer that is trained from the text, with four special ones", "data", at_least(5),
         kCommon});
  visit("tokenizer", c.tokenizer, {"Algorithm of the tokenizer that is trained from the text", "data"});
  visit("lowercase", c.lowercase, {"Convert all text to lower case, in training and in embeddings", "data"});
  visit("lines", c.lines,
        {"Each line is a document, such as a sentence; document_end is not read", "data", {}, kCommon});
  visit("document_end", c.document_end,
        {"Separator between the documents of a file; empty: each file is one document", "data"});
  visit("dev_share", c.dev_share,
        {"Share of the text, at its end, that is used for evaluation if there is no dev text", "data", kShare});
  visit("mask_share", c.mask_share,
        {"Share of the tokens that are predicted, in each piece of text at least one", "data", kShare, kCommon});
  visit("mask_token_share", c.mask_token_share,
        {"Share of the predicted tokens that the mask token replaces", "data", between(0, 1)});
  visit("random_token_share", c.random_token_share,
        {"Share of the predicted tokens that another token of the text replaces; the others stay; with "
         "mask_token_share at most 1",
         "data", between(0, 1)});
  visit("whole_words", c.whole_words, {"Mask all tokens of a word together", "data"});
  visit("mask_span", c.mask_span,
        {"Mean number of tokens next to each other, or words with whole_words, that are masked together; 1 chooses "
         "each by itself",
         "data", between(1, 64)});
}

// Throws Error, naming the field, for a value outside its range, and for shares whose sum is above 1.
void check(const EncoderConfig& config);

struct EncoderRecipe : Recipe {
  EncoderConfig encoder;
  // As in LanguageRecipe (qkv/language.h).
  bool fit = false;
  std::set<std::string> given = {};
};

// Returns a preset; throws Error for an unknown name.
//   "encoder-tiny"     4 layers, d_model 128, 4 heads, 128 tokens: norms first, rotary positions
//   "bert-base"        12 layers, d_model 768, 12 heads, 512 tokens: the base model of Devlin et al. (2019)
//   "modernbert-base"  22 layers, d_model 768, 12 heads, 1024 tokens, GeGLU, and windows of 128 tokens in two of three
//                      layers: the base model of Warner et al., "Smarter, Better, Faster, Longer" (2024)
EncoderRecipe encoder_preset(const std::string& name);
inline constexpr const char* kEncoderPreset = "encoder-tiny";  // the usual one

// Returns a recipe for training a run of an encoder further: its model, and training values for fine-tuning
// (docs/fine-tuning.md). A run without token_head, as imported ones without one are, gets token_head dense with
// tied_output and output_bias. No other value of the model than dropout may be changed.
EncoderRecipe encoder_fine_tuning(const std::string& run);

// Returns the recipe of a choice as translation_recipe does.
EncoderRecipe encoder_recipe(const RecipeChoice& choice);

struct EncoderFiles {
  std::vector<std::string> text;      // plain text, UTF-8
  std::vector<std::string> dev = {};  // text for evaluation; empty: the end of the text
  // encoder.json gets vocab_size from these two, and lowercase from an initial run.
  std::string tokenizer = "";  // a SentencePiece model with a piece "<mask>" or "[MASK]"; "": trained
  std::string init = "";       // a run of an encoder that training starts from, with its tokenizer; "": none
};

// Trains an encoder and writes it to the run directory `out`. Returns false if should_stop ended training early. A run
// is resumed, and an initial run is used, as by train_translator. Documents are cut into pieces that fit into
// max_length with the tokens around a text, at different places in each epoch. The masks of a piece depend on the seed,
// the epoch and its place in the text only; those of the dev text are the same in all runs with the same options.
// Losses and numbers of tokens are those of the masked tokens. r_drop and lora_rank must be 0. The text is held in
// memory until it is tokenized, and its tokens, of 4 bytes each, until training ends. Throws Error for invalid text,
// options or files, and for an initial run of another kind.
bool train_encoder(const EncoderFiles& files, const EncoderRecipe& recipe, const std::string& out,
                   const TrainingObserver& observer, const RankOptions& ranks = {});

}  // namespace qkv
