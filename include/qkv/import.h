// Import of models that other projects trained. docs/import.md lists what is read and what is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qkv/config.h"

namespace [[gnu::visibility("default")]] qkv {

// Description of a PyTorch model around nn.Transformer, for what its state dictionary does not say. It requires
// source_embedding and heads.
struct TorchModel {
  std::string source_embedding, target_embedding, output_layer, position_table;
  std::vector<std::string> ignore;
  std::optional<int64_t> heads;
  Activation activation = Activation::relu;
  NormPosition norm_position = NormPosition::post;
  double norm_epsilon = 1e-5;
  bool scale_embeddings = true;
  Positions positions = Positions::interleaved;
  int64_t max_length = 512;
};

template <class Visitor>
void visit_fields(TorchModel& m, Visitor&& visit) {
  constexpr const char* kGroup = "PyTorch state dictionary";
  constexpr Range kSize = between(1, 1 << 24);
  visit("source_embedding", m.source_embedding, {"Tensor [V, d] of the source embeddings; required", kGroup});
  visit("target_embedding", m.target_embedding,
        {"Tensor [V, d] of the target embeddings; by default the source embeddings", kGroup});
  visit("output_layer", m.output_layer,
        {"Tensor [V, d] before the softmax, with its bias next to it if there is one; by default the target embeddings",
         kGroup});
  visit("position_table", m.position_table,
        {"Tensor [max_length, d] of learned positions of both sides; by default there is none", kGroup});
  visit("ignore", m.ignore, {"Tensors that are not part of the model", kGroup});
  visit("heads", m.heads, {"Number of attention heads, which tensors do not show; required", kGroup, kSize});
  visit("activation", m.activation, {"Activation function of the feed-forward network", kGroup});
  visit("norm_position", m.norm_position, {"Place of the norms; pre is norm_first=True", kGroup});
  visit("norm_epsilon", m.norm_epsilon,
        {"Added to the variance in a norm", kGroup, between(0, 1).without_min().without_max()});
  visit("scale_embeddings", m.scale_embeddings, {"Multiply embeddings by the square root of d", kGroup});
  visit("positions", m.positions, {"Positional encoding, without position_table", kGroup});
  visit("max_length", m.max_length, {"Tokens of the longest sequence, without position_table", kGroup, kSize});
}

// The state of a download from the Hugging Face hub.
struct DownloadProgress {
  std::string file = {};  // name in the repository; "" while its list of files is requested
  int64_t received = 0;   // bytes that have arrived, those of an earlier attempt included
  int64_t size = 0;       // bytes of the file; 0 if the hub does not say
  bool complete = false;  // the file is checked and in the cache; the last report on it
  std::string note = {};  // why nothing arrives at the moment, or ""
};

struct ImportOptions {
  bool tokens = false;
  std::string source_tokenizer = "", target_tokenizer = "";
  std::string source_vocabulary = "", target_vocabulary = "";
  std::optional<std::string> source_start = {}, source_end = {}, start = {}, end = {}, unknown = {};
  std::string adapter = "";
  TorchModel torch = {};

  // Called during a download, at least about once a second. May throw to end it; what has arrived is kept.
  std::function<void(const DownloadProgress&)> on_download = {};
};

template <class Visitor>
void visit_fields(ImportOptions& o, Visitor&& visit) {
  constexpr const char *kText = "tokenizer", *kTokens = "special tokens";
  visit("tokens", o.tokens,
        {"Read text as tokens separated by spaces, even if the model has a tokenizer", kText, {}, kCommon});
  visit("source_tokenizer", o.source_tokenizer,
        {"SentencePiece model, for a model without a tokenizer", kText, {}, kCommon});
  visit("target_tokenizer", o.target_tokenizer,
        {"SentencePiece model of the target; by default that of the source", kText, {}, kCommon});
  visit("source_vocabulary", o.source_vocabulary,
        {"Vocabulary of a Marian model, or list of tokens of a state dictionary: a JSON array (.json) or lines",
         kText,
         {},
         kCommon});
  visit("target_vocabulary", o.target_vocabulary,
        {"List of tokens of the target; by default that of the source", kText, {}, kCommon});
  visit("source_start", o.source_start,
        {"Token before a source sentence, in place of the model's; empty is none", kTokens, {}, kCommon});
  visit("source_end", o.source_end,
        {"Token after a source sentence, in place of the model's; empty is none", kTokens, {}, kCommon});
  visit("start", o.start, {"Token that a translation starts from, in place of the model's", kTokens, {}, kCommon});
  visit("end", o.end, {"Token that ends a translation, in place of the model's", kTokens, {}, kCommon});
  visit("unknown", o.unknown,
        {"Token for text outside the vocabulary, in place of the model's; empty is none", kTokens, {}, kCommon});
  visit("adapter", o.adapter,
        {"Directory of a LoRA adapter that PEFT wrote; it is merged into the weights", "adapter", {}, kCommon});
  visit_fields(o.torch, visit);
}

struct ImportReport {
  std::string kind;  // TransformersModel::name, "CTranslate2", "Argos Translate", "Marian" or "PyTorch"
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
//   a Marian model: the .npz archive, or a directory with one
//   a GGUF file of llama.cpp
//   a state dictionary of a PyTorch model around nn.Transformer, as a safetensors file or written by torch.save
//   hf:OWNER/NAME, a repository of the Hugging Face hub that holds one of these; hf:OWNER/NAME/FILE, one file of it;
//   both may be followed by @REVISION, a branch, a tag or a commit. docs/import.md describes the download and its
//   cache.
// Throws Error, naming the file and the tensor or field, if an option is out of range, if `out` exists, or if `source`
// is broken, contradicts itself, has a feature that is not supported or cannot be downloaded. `source` is not trusted.
ImportReport import_model(const std::string& source, const std::string& out, const ImportOptions& options = {});

}  // namespace qkv
