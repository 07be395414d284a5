// The documents of a language model's text as one sequence of token ids: an end token before each document and after
// the last. The label of token n is token n + 1. Attention never crosses the start of a document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_codec.h"

namespace qkv {

// Tokenized documents.
struct TokenStream {
  std::vector<int32_t> ids;
  std::vector<int64_t> starts;  // index of the end token before each document
  int64_t bytes = 0;            // total size of the text

  int64_t predictions() const { return static_cast<int64_t>(ids.size()) - 1; }
};

// Splits a text at each separator and the line break that may follow it. Empty documents are dropped. An empty
// separator makes the whole text one document.
std::vector<std::string_view> split_documents(std::string_view text, std::string_view separator);

// Removes the last `share` of the documents' bytes and returns them. These are whole documents, except that the first
// may begin inside a document, at a character boundary.
std::vector<std::string_view> take_end(std::vector<std::string_view>& documents, double share);

// Tokenizes documents. Throws Error, with the prefix `where`, if encode does or if there is no text.
TokenStream stream_of(const std::vector<std::string_view>& documents, const TextCodec& codec, const std::string& where);

}  // namespace qkv
