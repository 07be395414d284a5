// The documents of a language model's text as one row of token ids: the end token, a document, the end token, the next
// document, …, the end token. Token n is followed by token n + 1, and nothing attends across a document's start.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_codec.h"

namespace qkv {

struct TokenStream {
  std::vector<int32_t> ids;
  std::vector<int64_t> starts;  // of the documents: places of the end tokens before them
  int64_t bytes = 0;            // of their text

  int64_t predictions() const { return static_cast<int64_t>(ids.size()) - 1; }
};

// The parts of a text between its separators, without the line break that follows one; empty parts are none. A
// separator of "" makes it one document.
std::vector<std::string_view> split_documents(std::string_view text, std::string_view separator);

// Takes the last `share` of the documents' bytes away and returns them, whole documents but for the first, which is cut
// at a character.
std::vector<std::string_view> take_end(std::vector<std::string_view>& documents, double share);

// Throws Error, beginning with `where`, where encode does, or for no text at all.
TokenStream stream_of(const std::vector<std::string_view>& documents, const TextCodec& codec, const std::string& where);

}  // namespace qkv
