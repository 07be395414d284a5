// How a sentence-transformers directory turns a text into a vector: modules.json, the folders of its modules,
// sentence_bert_config.json and config_sentence_transformers.json next to the model's files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "convert/formats/foreign_tensors.h"
#include "convert/formats/shards.h"
#include "convert/model_files.h"
#include "qkv/embedder.h"

namespace qkv {

// The names of its files.
inline constexpr const char *kModulesFile = "modules.json", *kTransformerFile = "sentence_bert_config.json",
                            *kSentenceModelFile = "config_sentence_transformers.json";

// A pooling in the words of sentence-transformers: from version 5.4 on, and of older ones.
struct PoolingName {
  const char *mode, *flag;
  Pooling pooling;
};
std::span<const PoolingName> pooling_names();

// Returns the class of PyTorch, "torch.nn.modules.activation.Tanh".
std::string torch_activation(DenseActivation activation);

// The weights of a Dense module: dense.N.weight and dense.N.bias.
struct DenseModule {
  std::shared_ptr<const Shards> file;
  Origins origins;
};

// Whether modules.json lists a Pooling module: the directory is an embedder, also if its model has a head.
bool is_embedder(const ModelFiles& files);

// Sets prefix, prompts, lowercase, max_length, pooling, dense and normalize from the files, and returns the Dense
// modules. `width` is that of the hidden states. Without a modules.json nothing is set. Throws Error, naming file and
// field, for modules, poolings and settings that are not supported.
std::vector<DenseModule> read_sentence_transformers(const ModelFiles& files, int64_t width, EmbeddingConfig& config);

// Checks the same files of a cross-encoder, and sets lowercase and max_length.
void read_cross_encoder(const ModelFiles& files, EmbeddingConfig& config);

}  // namespace qkv
