// The layers of a class of transformers that predict masked tokens (…ForMaskedLM): norm(φ(h Wᵀ + b)) Eᵀ + b_U, where E
// usually are the embeddings.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "convert/settings.h"
#include "convert/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

// How an architecture predicts masked tokens.
struct TokenHeadRule {
  std::string dense, norm;                    // modules
  std::string embeddings, output;             // tensors: the embeddings, and E
  std::string bias, other_bias = "";          // the tensor of b_U, and another name of it
  std::optional<Activation> activation = {};  // φ; nothing if no activation has this name here
  bool dense_bias = true;                     // b
};

// Questions about the tensors of a file, by their names.
struct SeenTensors {
  std::function<bool(const std::string& name)> has;
  std::function<bool(const std::string& a, const std::string& b)> same;  // whether two have the same numbers
};

// Sets token_head, tied_output and output_bias if there are tensors of a head that the model can express: its
// activation and its bias are those of the feed-forward layers.
void see_token_head(const TokenHeadRule& rule, const SeenTensors& seen, const Settings& config, ModelConfig& model);

// Adds the tensors of the head that the configuration has.
void add_token_head(TensorMap& map, const TokenHeadRule& rule, const ModelConfig& model);

}  // namespace qkv
