// Batches of a text for a language model: pieces of documents, packed without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "data/token_stream.h"

namespace qkv {

struct TextBatchOptions {
  int64_t max_length = 1024;  // tokens of a piece
  int64_t batch_tokens = 4096;
  uint64_t seed = 1;
};

// Its batches depend on nothing but the text, options, epoch and number.
class TextBatches {
 public:
  // The text outlives it. Throws Error if batch_tokens is below the longest piece.
  TextBatches(const TokenStream& text, const TextBatchOptions& options);

  // Tokens [begin, end) of the text, of one document, each with the token after it as its label.
  struct Piece {
    int64_t begin, end;
  };
  struct Epoch {
    std::vector<Piece> pieces;
    std::vector<int64_t> offsets;  // batch b has pieces offsets[b] … offsets[b + 1] − 1

    int64_t batches() const { return static_cast<int64_t>(offsets.size()) - 1; }
  };
  // Every document is cut after the same number of tokens, drawn for each epoch, and then after each max_length; the
  // pieces are shuffled.
  Epoch shuffled(int64_t epoch) const;
  // Pieces of max_length, in the order of the text.
  Epoch in_order() const;

  void fill(const Epoch& epoch, int64_t batch, Batch& to) const;

  int64_t longest() const { return longest_; }

 private:
  std::vector<Piece> cut(int64_t first) const;
  Epoch batched(std::vector<Piece> pieces) const;

  const TokenStream& text_;
  TextBatchOptions options_;
  int64_t longest_ = 0;
};

}  // namespace qkv
