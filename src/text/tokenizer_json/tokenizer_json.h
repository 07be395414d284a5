// tokenizer.json: the file in which Hugging Face's library tokenizers keeps a tokenizer, as far as it is supported
// here.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer_json/hugging_face_tokenizer.h"

namespace qkv {

// Appends a merge, "Ġ t", to a list with one a line; a line that names a version is none.
void add_merge(std::string_view merge, std::string& merges);

// Whether the tokens around a text are read; a translator has its own.
enum class Edges { read, ignored };

// Throws Error, beginning with `where`, for JSON that is none, and for anything that changes ids and is not supported,
// naming its place in the file; the parts of a pipeline are checked by HuggingFaceTokenizer. `truncation` and `padding`
// are not read: transformers sets them again for each text.
TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& where, Edges edges = Edges::read);

// The text of such a file. Read again, it is the same.
std::string to_json(const TokenizerSpec& spec);

}  // namespace qkv
