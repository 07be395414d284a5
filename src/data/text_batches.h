// Batches for a language model: the documents of a text as one sequence of token ids, and pieces of documents, packed
// without padding. The sequence has a start token before each document and an end token after it. If these are the same
// token, two documents share the one between them. The label of token n is token n + 1. Attention never crosses the
// start of a document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.h"
#include "text/text_codec.h"

namespace qkv {

// The beginning of a document: number of its file, from 0, and line, from 1.
struct TextPlace {
  int64_t file = 0, line = 1;
};

// The tokens between documents: an end token that is also the start token of the next one, an end token and a start
// token, or none.
enum class EndTokens { shared, own, none };

// Tokenized documents.
struct TokenStream {
  std::vector<int32_t> ids;
  std::vector<int64_t> starts;          // index of the start token, or else the first token, of each document
  std::vector<std::string> files = {};  // of the text
  std::vector<TextPlace> places = {};   // of each document
  int64_t bytes = 0;                    // total size of the text
  EndTokens ends = EndTokens::shared;

  // Returns the number of tokens in pieces of documents: of a language model all but the last token of each.
  int64_t predictions() const {
    const int64_t last = ends == EndTokens::none ? 0 : ends == EndTokens::own ? std::ssize(starts) : 1;
    return std::ssize(ids) - last;
  }
  // Returns the index after the last token of a document that is in a piece.
  int64_t end_of(size_t document) const {
    const bool is_last = document + 1 == starts.size();
    const int64_t next = is_last ? std::ssize(ids) : starts[document + 1] + (ends == EndTokens::shared);
    return next - (ends != EndTokens::none);
  }
};

// The tokens around a document.
struct DocumentEnds {
  int32_t start, end;
};

// Splits a text at each separator and the line break that may follow it. Empty documents are dropped. An empty
// separator makes the whole text one document.
std::vector<std::string_view> split_documents(std::string_view text, std::string_view separator);

// Removes the last `share` of the documents' bytes and returns them. These are whole documents, except that the first
// may begin inside a document, at a character boundary.
std::vector<std::string_view> take_end(std::vector<std::string_view>& documents, double share);

// Tokenizes documents. Without `ends`, the end token of the codec is on both sides of a document. Throws Error, with
// the prefix `where`, if encode does or if there is no text.
TokenStream stream_of(const std::vector<std::string_view>& documents, const TextCodec& codec, const std::string& where,
                      const std::optional<DocumentEnds>& ends = {});

// Identifies a text in saved states.
std::string fingerprint_of(const TokenStream& text);

struct TextBatchOptions {
  int64_t max_length = 1024;  // largest number of tokens in a piece
  int64_t batch_tokens = 4096;
  uint64_t seed = 1;
  int64_t around = 0;  // tokens that are added to each piece, which count in batch_tokens
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

  int64_t longest() const { return longest_; }  // piece, with the tokens around it

 private:
  std::vector<Piece> cut(int64_t first) const;
  Epoch batched(std::vector<Piece> pieces) const;

  const TokenStream& text_;
  TextBatchOptions options_;
  int64_t longest_ = 0;
};

}  // namespace qkv
