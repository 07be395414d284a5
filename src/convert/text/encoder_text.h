// The text of an encoder of BERT's family, perhaps in a directory of sentence-transformers.
#pragma once

#include "convert/imported_model.h"

namespace qkv {

// The special tokens of an architecture where tokenizer_config.json names none.
struct EncoderTokens {
  const char *start, *end, *unknown;
};

// Reads the tokenizer and how a text becomes a vector. `tokenizer_class` is that of read_text_codec.
ModelText read_encoder_text(const TextSource& source, const EncoderTokens& tokens, const char* tokenizer_class);

// The same with the special tokens of BERT.
ModelText read_bert_text(const TextSource& source);

// The same for ALBERT: its tokenizer is spiece.model, whose ids are used as they are. Text is normalized first as
// tokenizer_config.json says.
ModelText read_albert_text(const TextSource& source);

}  // namespace qkv
