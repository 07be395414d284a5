// Import of models that other projects trained. docs/import.md lists what is read and what is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qkv/config.h"

namespace qkv {

// Description of a PyTorch model around nn.Transformer, for what its state dictionary does not say.
struct TorchModel {
  std::string source_embedding;     // tensor [V, d]
  std::string target_embedding;     // tensor [V, d]; "": the source embedding
  std::string output;               // tensor [V, d], with a bias next to it if there is one; "": the target embedding
  std::string position_table;       // learned positions of both sides, tensor [max_length, d]; "": see `positions`
  std::vector<std::string> ignore;  // tensors that are not part of the model
  int64_t heads = 0;                // attention heads; must be given
  Activation activation = Activation::relu;
  NormPosition norm_position = NormPosition::post;
  double norm_epsilon = 1e-5;
  bool scale_embeddings = true;
  Positions positions = Positions::interleaved;  // without a table
  int64_t max_length = 512;                      // tokens of the longest sequence, without a table
};

struct ImportOptions {
  bool tokens = false;  // text is already split into tokens at spaces, even if the model has a tokenizer
  // SentencePiece models, for a model that has none; "" for the target: the source's.
  std::string source_tokenizer, target_tokenizer;
  // Lists of tokens (a JSON array, or one token per line), for a state dictionary; "" for the target: the source's.
  std::string source_vocabulary, target_vocabulary;
  // Special tokens in place of the model's; "" is none.
  std::optional<std::string> source_start, source_end, start, end, unknown;
  TorchModel torch;
};

struct ImportReport {
  std::string kind;  // TransformersModel::name, "CTranslate2", "Argos Translate" or "PyTorch"
  ModelConfig config;
  int64_t parameters = 0;
  std::vector<std::string> notes = {};  // what was left out, in words
};

// A model class of Hugging Face's transformers that import_model reads.
struct TransformersModel {
  std::string name;                      // "GPT-2"
  std::vector<std::string> model_types;  // values of model_type in config.json: {"gpt2"}
  std::string model_class;               // "GPT2LMHeadModel"
  bool exported = false;                 // whether export_model writes this class
};

// Returns all of them in alphabetical order of their files.
std::vector<TransformersModel> transformers_models();

// Reads `source` and writes the run directory `out` in float32, whole or not at all. `source` is one of:
//   a directory in the Hugging Face layout, of one of transformers_models() or of sentence-transformers
//   a CTranslate2 directory
//   an Argos Translate package: the .argosmodel file, or the directory in it
//   a state dictionary of a PyTorch model around nn.Transformer, as a safetensors file
// Throws Error, naming the file and the tensor or field, if `out` exists, or if `source` is broken, contradicts itself
// or has a feature that is not supported. `source` is not trusted.
ImportReport import_model(const std::string& source, const std::string& out, const ImportOptions& options = {});

}  // namespace qkv
