// A tokenizer of the library tokenizers in its general form: a normalizer, a pre-tokenizer, a model and a decoder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/pieces/character_pairs.h"
#include "text/pieces/unigram.h"
#include "text/pieces/vocabulary.h"
#include "text/pieces/word_pieces.h"
#include "text/tokenizer_json/normalizer.h"
#include "text/tokenizer_json/piece_decoder.h"
#include "text/tokenizer_json/pre_tokenizer.h"

namespace qkv {

// Byte-pair encoding of characters (character_pairs.h).
struct PairsModel {
  std::string merges = {};  // the pieces of the first pair, then those of the second: see add_pair
  CharacterPairsOptions options = {};

  bool operator==(const PairsModel&) const = default;
};

// Pieces with scores (unigram.h).
struct UnigramModel {
  std::vector<double> scores = {};  // by id
  std::optional<int32_t> unknown = {};
  bool byte_fallback = false;

  bool operator==(const UnigramModel&) const = default;
};

// The longest pieces from the left (word_pieces.h).
struct LongestModel {
  std::string unknown = "[UNK]", continuation = "##";
  int64_t max_characters = 100;

  bool operator==(const LongestModel&) const = default;
};

// Whole words.
struct WholeWordsModel {
  std::string unknown = "<unk>";

  bool operator==(const WholeWordsModel&) const = default;
};

struct PipelineSpec {
  std::string normalizer = {}, pre_tokenizer = {}, decoder = {};  // these parts of a tokenizer.json; "" is null
  std::variant<PairsModel, UnigramModel, LongestModel, WholeWordsModel> model = {};

  bool operator==(const PipelineSpec&) const = default;
};

// Appends a pair to a list of merges; bytes that UTF-8 does not have stand behind the two pieces.
void add_pair(std::string_view left, std::string_view right, std::string& merges);
// Returns the pairs of such a list.
std::vector<std::pair<std::string_view, std::string_view>> pairs_of(std::string_view merges);

class Pipeline {
 public:
  // `pieces`: how many of the vocabulary, which must outlive this, are the model's. Throws Error, beginning with
  // `where`, for a part of the file that is not supported, and for a model that does not fit its pieces.
  Pipeline(const PipelineSpec& spec, const Vocabulary& vocabulary, int32_t pieces, const std::string& where);

  std::string normalize(std::string_view text) const { return normalizer_.apply(text); }
  // Appends the ids of normalized text without added tokens. `first`: whether the whole text begins with it.
  void encode(std::string_view text, bool first, std::vector<int32_t>& ids) const;
  // Returns the bytes of a piece. `first`: whether it begins the text.
  std::string decode(std::string_view piece, bool first) const { return decoder_.decode(piece, first); }

 private:
  struct WholeWords {
    const Vocabulary& vocabulary;
    int32_t pieces;
    std::optional<int32_t> unknown;

    void encode(std::string_view word, std::vector<int32_t>& ids) const;
  };
  using Model = std::variant<CharacterPairs, Unigram, WordPieces, WholeWords>;
  static Model model_of(const PipelineSpec& spec, const Vocabulary& vocabulary, int32_t pieces,
                        const std::string& where);

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  PieceDecoder decoder_;
  Model model_;
};

}  // namespace qkv
