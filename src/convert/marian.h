// The files of a Marian model: an .npz archive, and next to it configurations and vocabularies.
#pragma once

#include <string>
#include <vector>

#include "convert/imported_model.h"

namespace qkv {

// Returns whether a path names an .npz archive.
bool is_npz(const std::string& path);

// Returns the .npz archives of a directory, except the states of Marian's optimizer.
std::vector<std::string> npz_files(const std::string& directory);

// Reads the vocabularies: those of the options, of the vocabs in NAME.npz.decoder.yml, decoder.yml or NAME.npz.yml, or
// vocab.spm, vocab.yml. A vocabulary is a SentencePiece model (.spm, .model), a mapping of pieces to ids (.yml, .yaml,
// .json) or a list of lines. Lists split text with source.spm and target.spm if these exist. Throws Error, naming the
// file.
TranslatorText read_marian_vocabularies(const std::string& npz, const ImportOptions& options);

}  // namespace qkv
