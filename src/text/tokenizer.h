// Text to token ids and back: sub-words by SentencePiece (Kudo and Richardson, 2018; unigram: Kudo, 2018; BPE: Sennrich
// et al., 2016), a tokenizer of Hugging Face's library, or what stands between spaces; ids are the tokenizer's or
// places in a list of pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/text.h"
#include "text/tokenizer_json/hugging_face_tokenizer.h"

namespace qkv {

// nmt_nfkc folds compatible characters into one (full-width letters, ligatures, "…", no-break spaces); none keeps every
// character as it is written. Both fold runs of spaces into one and drop spaces at the ends.
enum class Normalization { nmt_nfkc, none };

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::unigram;
  int64_t vocab_size = 8000;        // at most; a small text may give fewer pieces
  double character_coverage = 1.0;  // share of the text's characters that get a piece, in [0.98, 1]
  Normalization normalization = Normalization::nmt_nfkc;
  // Every text comes back as it was: no normalization, all spaces kept, bytes for what has no piece.
  bool exact = false;
  std::vector<std::string> reserved = {};  // characters that are pieces by themselves, wherever a text has them
  std::vector<std::string> control = {};  // more tokens that text does not spell, without commas
};

// The bytes of a model file, and its name in errors.
struct SentencePieceFile {
  std::string bytes, where;

  static SentencePieceFile read(const std::string& path);  // throws Error if it cannot be read
};

constexpr int64_t kMaxPadding = 4096;  // rows of a model without a piece, behind those of the pieces

// A vocabulary and the way to cut text into it. Immutable; copies share it; all methods may be called from many
// threads.
class Tokenizer {
 public:
  // Learns a vocabulary: <unk> 0, <s> 1, </s> 2, more control tokens, then pieces. Sentences are valid UTF-8. The same
  // sentences and options give the same bytes on any number of threads. Throws Error for options out of range, for text
  // without a sentence, and where the characters alone need more pieces than vocab_size.
  static Tokenizer train(const std::vector<std::string>& sentences, const TokenizerOptions& options);

  // A SentencePiece model file, or its bytes; `where` names them in errors. Throws Error for a broken or cut model, one
  // that SentencePiece could not hold safely (see sentencepiece_check.h), and one without an end token.
  static Tokenizer load(const std::string& path);
  static Tokenizer from_serialized(std::string bytes, const std::string& where);

  // Pieces whose ids are their places in a list of their own. `splitter`, a SentencePiece model, cuts text into pieces;
  // without it they stand between spaces and tabs. A name of a language at the start of a text, ">>de<<", is kept whole
  // if it is a piece. A word outside the list becomes the piece `unknown`; without one ("") it is an Error of encode.
  // Throws Error, beginning with `where`, for a list that is no vocabulary (see vocabulary.h) or lacks `unknown`, and
  // for what load refuses of the splitter, but for the end token.
  static Tokenizer with_pieces(const std::optional<SentencePieceFile>& splitter, std::vector<std::string> pieces,
                               const std::string& unknown, const std::string& where);

  // A tokenizer of Hugging Face's library: byte-level BPE or WordPiece.
  static Tokenizer of_hugging_face(HuggingFaceTokenizer tokenizer);

  // Returns a copy for a model with `size` rows, which may be up to kMaxPadding more than there are pieces: ids without
  // a piece have no text. There may also be fewer, if the pieces without a row are added tokens of a tokenizer of
  // Hugging Face's library, which the copy leaves out. Throws Error, beginning with `where`, for other sizes.
  Tokenizer fitted(int64_t size, const std::string& where) const;

  // Returns a copy whose texts leave out these ids, such as the tokens of languages. A list of pieces between spaces
  // keeps them.
  Tokenizer without_text(std::vector<int32_t> ids) const;

  // Returns a copy of a list of pieces in whose texts these tokens may be spelled, as in transformers: the spelling is
  // the token, and the text between is encoded as if it stood alone. Ids are not read. Throws Error, beginning with
  // `where`, for a token that is no piece, and for a tokenizer without a list.
  Tokenizer with_spelled(std::vector<AddedToken> tokens, const std::string& where) const;

  // The tokenizer of Hugging Face's library; null where there is none.
  const HuggingFaceTokenizer* hugging_face() const;

  // Returns the pieces of a SentencePiece model in the order of its ids. Throws like with_pieces.
  static std::vector<std::string> pieces_of(const SentencePieceFile& file);

  // The bytes of the SentencePiece model file; "" where there is none.
  const std::string& serialized() const;
  // The list of pieces; null where the ids are SentencePiece's.
  const std::vector<std::string>* own_pieces() const;

  // Ids of a line of text, without start and end tokens. Text of spaces only gives none.
  std::vector<int32_t> encode(std::string_view text) const;

  // The same, but the tokens of with_spelled are text.
  std::vector<int32_t> encode_plain(std::string_view text) const;

  // The same, but the spelling of a control token of a SentencePiece model (</s>), or of its unknown token, becomes
  // that token; the text between is encoded as if it stood alone.
  std::vector<int32_t> encode_prompt(std::string_view text) const;

  // Text of ids; SentencePiece's start and end tokens give nothing, its unknown token gives " ⁇ ". Throws Error for an
  // id outside [0, size()).
  std::string decode(std::span<const int32_t> ids) const;

  // Text of ids that are a part of what a SentencePiece model writes, byte for byte; a piece of one byte may be a part
  // of a character. first: whether it is the beginning, which loses the space that such a model puts before a text.
  // Control tokens (<s>, </s>) have no text. Throws as decode does.
  std::string decode_part(std::span<const int32_t> ids, bool first) const;

  // The piece of an id as the vocabulary spells it; "▁" begins a word; "" of an id without a piece. Throws as decode
  // does.
  const std::string& piece(int32_t id) const;
  std::vector<std::string> pieces(std::span<const int32_t> ids) const;

  // The id of a piece as the vocabulary spells it.
  std::optional<int32_t> id(std::string_view piece) const;

  int32_t size() const;  // V
  // For a SentencePiece vocabulary; −1 where the pieces are a list, which says nothing of their use.
  int32_t start() const;    // id of <s>, or of </s> where the vocabulary has no <s>
  int32_t end() const;      // id of </s>
  int32_t unknown() const;  // id of <unk>; of a list, that of `unknown`, or −1

 private:
  struct Model;
  explicit Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  void check_id(int32_t id) const;
  std::vector<int32_t> encode_with(const AddedTokens& tokens, std::string_view text) const;

  std::shared_ptr<const Model> model_;
  int32_t padding_ = 0;                     // ids without a piece, behind the others
  std::vector<int32_t> without_text_ = {};  // sorted
  std::shared_ptr<const AddedTokens> spelled_ = nullptr;
};

}  // namespace qkv
