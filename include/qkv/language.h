// Training a language model from plain text into a run directory: a decoder-only Transformer that says what comes next.
// Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), for the form of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/text.h"
#include "qkv/training.h"

namespace qkv {

// What a token is: a character (a code point that the training text has), a byte, or a piece of SentencePiece's. Models
// from elsewhere also have pieces of a tokenizer.json: runs of bytes (byte-level BPE), or parts of words (WordPiece).
enum class TextUnit { characters, bytes, pieces, byte_pieces, word_pieces };
constexpr std::array<std::string_view, 5> names_of(TextUnit) {
  return {"characters", "bytes", "pieces", "byte_pieces", "word_pieces"};
}

// language.json of a run.
struct LanguageConfig {
  TextUnit unit = TextUnit::characters;
  int64_t vocab_size = 4096;                     // pieces of the tokeniser that is trained from the text
  TokenizerKind tokenizer = TokenizerKind::bpe;  // its kind
  std::string start = "";                        // the piece before a text; "": the token that ends one
  std::vector<std::string> ends = {};            // pieces that end a text; none: the vocabulary's own end
  std::string document_end = "<|endoftext|>";  // stands between the documents of a file; "": a file is one document
  double dev_share = 0.1;                      // of the text, its end, kept aside where no dev text is given
  int64_t sample_tokens = 0;                   // of a text that each evaluation shows

  bool operator==(const LanguageConfig&) const = default;
};

// Calls visit(name, member, field) for every field: the one list behind language.json and the command line.
template <class Visitor>
void visit_fields(LanguageConfig& c, Visitor&& visit) {
  visit("unit", c.unit, "what a token is");
  visit("vocab_size", c.vocab_size, "pieces of the tokeniser trained from the text");
  visit("tokenizer", c.tokenizer, "kind of that tokeniser");
  visit("start", c.start, "the piece before a text");
  visit("ends", c.ends, "pieces that end a text");
  visit("document_end", c.document_end, "stands between the documents of a file");
  visit("dev_share", c.dev_share, "of the text, its end, kept aside where no dev text is given");
  visit("sample_tokens", c.sample_tokens, "length of a text that each evaluation shows; 0 is none");
}

// Throws Error, naming the value, for one that makes no sense.
void check(const LanguageConfig& config);

struct LanguageRecipe : Recipe {
  LanguageConfig language;
};

// "lm-small" (4 layers, d 128, 4 heads, 64 tokens: nanoGPT's for a CPU), "lm-med" (6, 384, 6, 256: its larger one) or
// "gpt2" (12, 768, 12, 1024). Throws Error for another name.
LanguageRecipe language_preset(const std::string& name);

struct LanguageFiles {
  std::vector<std::string> text;      // plain text
  std::vector<std::string> dev = {};  // to evaluate on; none: the end of the text
  std::string tokenizer = "";         // an existing SentencePiece model, for pieces; "": trained from the text
};

// Trains into the directory `out`; false if should_stop ended it early. A run that is there already is resumed where it
// was saved last, as by train_translation. Documents are cut into sequences of max_length tokens, elsewhere in each
// epoch, and nothing attends across a document's start. The text is held in memory, 4 bytes a token beside itself.
// Throws Error for text, options or files that will not do.
bool train_language(const LanguageFiles& files, const LanguageRecipe& recipe, const std::string& out,
                    const TrainingObserver& observer);

}  // namespace qkv
