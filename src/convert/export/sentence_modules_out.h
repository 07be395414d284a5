// The files of sentence-transformers next to those of transformers.
#pragma once

#include <cstdint>
#include <string>

#include "io/runs/run_kinds.h"
#include "qkv/export.h"

namespace qkv {

// Writes modules.json with the folders of its modules, sentence_bert_config.json and config_sentence_transformers.json
// of an embedder, and returns the number of parameters of its linear layers.
int64_t write_sentence_modules(const std::string& directory, const EncoderRun& encoder, const RunDirectory& run,
                               int64_t max_length, ExportType type);

}  // namespace qkv
