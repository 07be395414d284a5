// How a sentence-transformers directory turns a text into a vector: modules.json, 1_Pooling/config.json,
// sentence_bert_config.json and config_sentence_transformers.json next to the model's files.
#pragma once

#include "import/model_files.h"
#include "qkv/embedder.h"

namespace qkv {

// Sets prefix, lowercase, max_length, pooling and normalize from the files; without a modules.json nothing is set.
// Throws Error, naming the file, for modules and poolings that are not supported.
void read_sentence_transformers(const ModelFiles& files, EmbeddingConfig& config);

}  // namespace qkv
