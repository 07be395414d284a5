// Tokenizers, vocabularies and abbreviations as files of a run directory.
#pragma once

#include <string>
#include <vector>

#include "io/runs/run_directory.h"
#include "io/runs/translation_config.h"
#include "text/text_codec.h"

namespace qkv {

// The tokenizers of a translator. Each side has a SentencePiece model, a list of pieces or both; a file that both sides
// share is written once. Or both sides have one tokenizer.json. `unknown` is the piece for text that a list of pieces
// lacks; "": an Error when encoding.
TokenizerPair read_tokenizers(const RunDirectory& run, const std::string& unknown);
void write_tokenizers(const RunDirectory& run, const TokenizerPair& tokenizers);

// Returns a tokenizer whose texts may spell the tokens `spelled`, of which some take spaces; the same tokenizer if
// there are none. Throws Error, beginning with `where`, for a token that is not in the vocabulary or only takes spaces.
Tokenizer with_spelled(const Tokenizer& tokenizer, const std::vector<std::string>& spelled,
                       const std::vector<std::string>& strips_left, const std::vector<std::string>& strips_right,
                       const std::string& where);

// Reads and writes the abbreviations of a translator. There is no file if there are none. Throws Error, naming file and
// line, as read_abbreviations of a file does.
std::vector<std::string> read_abbreviations(const RunDirectory& run);
void write_abbreviations(const RunDirectory& run, const std::vector<std::string>& abbreviations);

// The codec of a language model: vocabulary.json of characters, tokenizer.model of pieces, tokenizer.json of byte
// pieces and word pieces, no file for bytes. Throws Error, naming the file.
TextCodec read_codec(const RunDirectory& run, TextUnit unit);
void write_codec(const RunDirectory& run, const TextCodec& codec);

// Returns the token with this spelling. Throws Error, beginning with `where`, if the vocabulary lacks it.
int32_t id_of(const std::string& piece, const TextCodec& codec, const std::string& where);

}  // namespace qkv
