// The tokenizers of encoders as files of the library tokenizers that give the same ids.
#pragma once

#include <cstdint>
#include <string>

#include "io/runs/run_kinds.h"

namespace qkv {

// The special tokens of an encoder; an id below 0 means that there is none.
struct EncoderSpecials {
  struct Token {
    std::string text = "";
    int32_t id = -1;
  };
  Token start, end, unknown, padding, mask;
};

// Returns those of a run. The padding token is [PAD] or <pad>, or else the end token. Throws Error, beginning with
// `where`, if no token stands before or after the text of an encoder, and for bytes and characters.
EncoderSpecials specials_of(const EncoderRun& run, const std::string& where);

// How a pair of texts is joined.
struct EncoderPairs {
  int64_t separators = 1;  // end tokens between the texts
  bool types = false;      // whether the tokens of the second text have the type 1
};

// Returns the tokenizer.json. Throws Error, naming file and field, for text that the library cannot treat in the same
// way.
std::string encoder_tokenizer_json(const EncoderRun& run, const EncoderSpecials& specials, const EncoderPairs& pairs,
                                   const RunDirectory& directory);

// Writes tokenizer_config.json.
void write_encoder_tokenizer_config(const std::string& directory, const EncoderSpecials& specials,
                                    const EncoderPairs& pairs, int64_t max_length);

}  // namespace qkv
