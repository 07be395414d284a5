// Batches for an encoder that predicts masked tokens: pieces of documents, each with the tokens around a text, packed
// without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "data/masking.h"
#include "data/text_batches.h"

namespace qkv {

// Where masks come from. Those of a piece are a function of these values and the place of the piece in the text.
struct MaskSource {
  uint64_t seed = 0;
  Stream stream = Stream::masks;
  int64_t epoch = 0;
};

class MaskedBatches {
 public:
  // Tokens of the text in its pieces have no tokens between documents (EndTokens::none), and each piece has one that is
  // not fixed. `options` counts max_length with the tokens around a piece, and its `around` is ignored. The text must
  // outlive it. Throws Error as TextBatches does, and if max_length has no room for a token of the text.
  MaskedBatches(const TokenStream& text, TextBatchOptions options, std::vector<int32_t> before,
                std::vector<int32_t> after, const MaskingOptions& masking, MaskingVocabulary vocabulary);

  const TextBatches& pieces() const { return pieces_; }
  int64_t longest() const { return pieces_.longest(); }
  // Returns a number of masked tokens that no batch exceeds.
  int64_t most_masked() const;

  void fill(const TextBatches::Epoch& epoch, int64_t batch, const MaskSource& masks, Batch& to) const;

 private:
  const TokenStream& text_;
  TextBatchOptions options_;
  std::vector<int32_t> before_, after_;
  MaskingOptions masking_;
  MaskingVocabulary vocabulary_;
  TextBatches pieces_;
};

}  // namespace qkv
