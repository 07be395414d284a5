// The documents of a language model's text as one sequence of token ids: a start token before each document and an end
// token after it. If these are the same token, two documents share the one between them. The label of token n is token
// n + 1. Attention never crosses the start of a document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_codec.h"

namespace qkv {

// The beginning of a document: number of its file, from 0, and line, from 1.
struct TextPlace {
  int64_t file = 0, line = 1;
};

// Tokenized documents.
struct TokenStream {
  std::vector<int32_t> ids;
  std::vector<int64_t> starts;          // index of the start token of each document
  std::vector<std::string> files = {};  // of the text
  std::vector<TextPlace> places = {};   // of each document
  int64_t bytes = 0;                    // total size of the text
  bool shares_ends = true;              // whether the end token of a document is the start token of the next one

  // Returns the number of tokens that have a label.
  int64_t predictions() const { return std::ssize(ids) - (shares_ends ? 1 : std::ssize(starts)); }
  // Returns the index after the last token of a document that has a label.
  int64_t end_of(size_t document) const {
    return (document + 1 < starts.size() ? starts[document + 1] + shares_ends : std::ssize(ids)) - 1;
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

}  // namespace qkv
