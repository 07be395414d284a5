// Which tensors of transformers' models are which parameters of ours: the one list behind import and export.
#pragma once

#include <string>
#include <vector>

#include "import/foreign_tensors.h"
#include "qkv/config.h"

namespace qkv {

// How a tensor of theirs holds parameters of ours:
//   rows     their rows one below the other
//   columns  the same transposed: [in, out], a product's weights in GPT-2
//   line     one vector [n] as [1, n]
enum class Layout { rows, columns, line };

struct TensorName {
  std::string theirs;
  std::vector<std::string> ours;
  Layout layout = Layout::rows;
  std::vector<std::string> copies = {};  // other names of theirs, under which a file may hold the same numbers
};

struct TensorNames {
  std::vector<TensorName> tensors;
  std::vector<std::string> unused;  // what old files hold besides
};

// Of a model of this configuration, GPT-2's names behind a prefix, "transformer." or "". Positions that are learned are
// tensors, for Marian too; others are not.
TensorNames gpt2_names(const ModelConfig& config, const std::string& prefix);
TensorNames llama_names(const ModelConfig& config);  // Mistral's and Qwen's too, and StarCoder2's, without a gate
TensorNames marian_names(const ModelConfig& config);

// Makes the tensors the origins of our parameters. Throws Error that names file and tensor: one that is missing, copies
// that differ, one that has no name here.
void use_names(ForeignTensors& tensors, const TensorNames& names);

}  // namespace qkv
