// SentencePiece models and lists of pieces as tokenizers of the library tokenizers.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "convert/export/encoder_tokenizer_out.h"
#include "io/runs/run_kinds.h"
#include "text/tokenizer_json/hugging_face_tokenizer.h"

namespace qkv {

// Returns the steps of a normalizer for what embedding.json changes in a text: an array, which may be empty.
nlohmann::json text_changes(const EmbeddingConfig& config);

// Returns the tokenizer of a run whose unit is pieces, with what embedding.json says of the text. Throws Error, naming
// file and field, for what the library cannot do.
TokenizerSpec spec_of_pieces(const EncoderRun& run, const EncoderSpecials& specials, const RunDirectory& directory);

}  // namespace qkv
