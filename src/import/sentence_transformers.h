// What a sentence-transformers directory says of a text's vector: modules.json, 1_Pooling/config.json,
// sentence_bert_config.json and config_sentence_transformers.json beside the model's files.
#pragma once

#include "import/model_files.h"
#include "qkv/embedder.h"

namespace qkv {

// Sets prefix, lowercase, max_length, pooling and normalize as the files say; where there is no modules.json nothing is
// set. Throws Error, naming the file: modules and poolings that there are not here.
void read_sentence_transformers(const ModelFiles& files, EmbeddingConfig& config);

}  // namespace qkv
