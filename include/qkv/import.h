// Models from elsewhere as run directories. docs/import.md says what is read and what is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qkv/config.h"

namespace qkv {

// What the state dictionary of a PyTorch model around nn.Transformer does not say of itself.
struct TorchModel {
  std::string source_embedding, target_embedding;  // names of tensors, [V, d]; no target: the source's
  std::string output;                              // [V, d], its bias beside it; none: the target embedding
  std::string position_table;       // learned positions of both sides, [max_length, d]; none: `positions`
  std::vector<std::string> ignore;  // tensors that are not a part of the model
  int64_t heads = 0;
  Activation activation = Activation::relu;
  NormPosition norm_position = NormPosition::post;
  double norm_epsilon = 1e-5;
  bool scale_embeddings = true;
  Positions positions = Positions::interleaved;
  int64_t max_length = 512;  // where positions are not a table
};

struct ImportOptions {
  bool tokens = false;  // text is tokens with spaces between, even where the model has a tokeniser
  // SentencePiece models, for a model that comes without; no target's: the source's.
  std::string source_tokenizer, target_tokenizer;
  // Lists of tokens (a JSON array, or a line a token), for a state dictionary; no target's: the source's.
  std::string source_vocabulary, target_vocabulary;
  // Tokens, where the model says nothing or something else; "" is none.
  std::optional<std::string> source_start, source_end, start, end, unknown;
  TorchModel torch;
};

struct ImportReport {
  // "MarianMT", "GPT-2", "Llama", "Mistral", "Qwen2", "Qwen3", "StarCoder2", "BERT", "RoBERTa", "DistilBERT",
  // "CTranslate2", "Argos Translate", "PyTorch"
  std::string kind;
  ModelConfig config;
  int64_t parameters = 0;
  std::vector<std::string> notes = {};  // what was left out, in words
};

// Reads `source`: a directory in the Hugging Face layout of MarianMT, GPT-2, Llama, Mistral, Qwen, StarCoder2, BERT,
// RoBERTa or DistilBERT, perhaps one of sentence-transformers, a CTranslate2 directory, an Argos Translate package (the
// .argosmodel file, or the directory it holds), or a PyTorch state dictionary as a safetensors file. Writes the run
// directory `out`, float32, whole or not at all. Throws Error, naming file and tensor or field, if out exists or if
// source is broken, contradicts itself or asks for what there is not. Nothing in source is trusted.
ImportReport import_model(const std::string& source, const std::string& out, const ImportOptions& options = {});

}  // namespace qkv
