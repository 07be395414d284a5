// Batches for a language model: pieces of documents, packed without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "data/token_stream.h"

namespace qkv {

struct TextBatchOptions {
  int64_t max_length = 1024;  // largest number of tokens in a piece
  int64_t batch_tokens = 4096;
  uint64_t seed = 1;
};

// The batches of a text. They depend only on the text, the options, the epoch and the batch number.
class TextBatches {
 public:
  // The text must outlive it. Throws Error if batch_tokens is less than the longest piece.
  TextBatches(const TokenStream& text, const TextBatchOptions& options);

  // Tokens [begin, end) of one document of the text. The label of each token is the token after it.
  struct Piece {
    int64_t begin, end;
  };
  // The pieces of one epoch in their order, divided into batches.
  struct Epoch {
    std::vector<Piece> pieces;
    std::vector<int64_t> offsets;  // batch b holds pieces offsets[b] … offsets[b + 1] − 1

    int64_t batches() const { return static_cast<int64_t>(offsets.size()) - 1; }
  };
  // Shuffled pieces. Every document is split after the same number of tokens, which is drawn for each epoch, and from
  // there after every max_length tokens.
  Epoch shuffled(int64_t epoch) const;
  // Pieces of max_length tokens, in the order of the text.
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
