// The text of a language model in a GGUF file: its tokenizer, and the tokens around a text.
#pragma once

#include "convert/formats/gguf_file.h"
#include "convert/imported_model.h"

namespace qkv {

// Reads the metadata tokenizer.ggml.*: pieces of SentencePiece ("llama") or byte-level BPE ("gpt2"). Throws Error,
// naming the key, for another tokenizer, and for settings that would change ids and are not supported.
LanguageText gguf_text(const GgufMetadata& metadata);

}  // namespace qkv
