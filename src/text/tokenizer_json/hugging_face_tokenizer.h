// A tokenizer as Hugging Face's tokenizer.json describes it. Byte-level BPE and BERT's WordPiece have code of their
// own; all others are a pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/tokenizer_json/added_tokens.h"
#include "text/tokenizer_json/bert_text.h"
#include "text/tokenizer_json/pipeline.h"
#include "text/tokenizer_json/word_pattern.h"

namespace qkv {

// Bytes of words, merged in pairs (byte_pairs.h).
struct BytePieces {
  std::string merges = {};               // a pair a line
  bool whole_words = false;              // a word that is a piece is not merged
  bool compose = false;                  // Unicode's normal form C, first of all
  std::vector<WordPattern> splits = {};  // one after the other
  bool space_first = false;              // a space before each part so far that has none
  bool gpt2_words = true;                // then the words of WordPattern::gpt2

  bool operator==(const BytePieces&) const = default;
};

// Words of letters, and punctuation marks (bert_text.h), in the longest pieces from the left (word_pieces.h).
struct WordPieceModel {
  std::string unknown = "[UNK]", continuation = "##";
  int64_t max_characters = 100;  // a longer word is unknown
  BertCleaning cleaning = {};

  bool operator==(const WordPieceModel&) const = default;
};

struct TokenizerSpec {
  std::vector<std::string> pieces = {};            // of the model, by id
  std::vector<AddedToken> added = {};              // in the order of ids; those behind the pieces have the next ones
  std::optional<int32_t> before = {}, after = {};  // around a text
  std::variant<BytePieces, WordPieceModel, PipelineSpec> model = {};

  bool operator==(const TokenizerSpec&) const = default;
};

// Immutable; copies share it; all methods may be called from many threads.
class HuggingFaceTokenizer {
 public:
  // Throws Error, beginning with `where`, for pieces, merges and tokens that do not fit each other.
  HuggingFaceTokenizer(TokenizerSpec spec, const std::string& where);

  const TokenizerSpec& spec() const;
  bool has_byte_pieces() const { return std::holds_alternative<BytePieces>(spec().model); }

  // Ids of a text of valid UTF-8, at most 2^30 bytes, as transformers gives with add_special_tokens=False.
  std::vector<int32_t> encode(std::string_view text) const;
  // The same, but added tokens are only found where `accept` says so. A token that is looked for in normalized text has
  // the place of the text around it where normalization changes that text.
  std::vector<int32_t> encode(std::string_view text, const AddedTokens::Accept& accept) const;

  // The same of a text in which added tokens are not looked for: what spells one is ordinary text.
  std::vector<int32_t> encode_plain(std::string_view text) const;

  // The bytes of byte pieces, a part of a character among them; of word pieces words with spaces between, the first
  // without one where these ids begin a text. Added tokens are spelt, except the special ones of a pipeline, which have
  // no text. Throws Error for an id outside [0, size()).
  std::string decode(std::span<const int32_t> ids, bool first) const;

  // The spelling of an id, an error outside [0, size()), and the id of one.
  const std::string& piece(int32_t id) const;
  std::optional<int32_t> id(std::string_view piece) const;
  int32_t size() const;  // of pieces and added tokens

  // The ids of added tokens that are special, which transformers leaves out of texts.
  std::vector<int32_t> special_ids() const;
  // Returns a tokenizer without the pieces and tokens from `size` on, which must be added tokens. Throws Error,
  // beginning with `where`, if it is a piece of the model.
  HuggingFaceTokenizer shortened(int32_t size, const std::string& where) const;

 private:
  struct Model;
  std::shared_ptr<const Model> model_;
};

}  // namespace qkv
