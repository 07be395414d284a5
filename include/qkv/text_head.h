// The layers from the hidden states of a text to its vector or to the logits of labels.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

// How the last hidden states h_1 … h_N of a text's tokens, including those around it, become one vector:
//   mean           1/N Σ_n h_n
//   first          h_1
//   last           h_N
//   max            the maximum of each component
//   mean_sqrt_len  1/√N Σ_n h_n
//   weighted_mean  Σ_n n h_n / Σ_n n
enum class Pooling { mean, first, last, max, mean_sqrt_len, weighted_mean };
constexpr std::array<std::string_view, 6> names_of(Pooling) {
  return {"mean", "first", "last", "max", "mean_sqrt_len", "weighted_mean"};
}

// The activation of a linear layer after the pooling; gelu is exact.
enum class DenseActivation { identity, tanh, relu, gelu, sigmoid, silu };
constexpr std::array<std::string_view, 6> names_of(DenseActivation) {
  return {"identity", "tanh", "relu", "gelu", "sigmoid", "silu"};
}

// The activation φ of the hidden layer of a classifier's head; gelu is exact.
enum class HeadActivation { tanh, relu, gelu };
constexpr std::array<std::string_view, 3> names_of(HeadActivation) { return {"tanh", "relu", "gelu"}; }

// A linear layer after the pooling: v ← φ(v Wᵀ + b).
struct DenseShape {
  DenseActivation activation = DenseActivation::identity;
  int64_t in = 0, out = 0;
  bool bias = true;

  bool operator==(const DenseShape&) const = default;
};

// The head of a classifier: Norm(φ(v W_1ᵀ + b_1)) W_2ᵀ + b_2.
struct LabelHeadShape {
  int64_t labels = 0;  // rows of W_2, at least 1
  HeadActivation activation = HeadActivation::tanh;
  bool dense_bias = true;  // b_1
  bool norm = false;       // the norm, of the kind that the model has

  bool operator==(const LabelHeadShape&) const = default;
};

// The layers from the hidden states of a text to a vector or to the logits of labels, which are trained with a model.
struct TextHeadConfig {
  enum class Kind { none, vectors, labels };

  Kind kind = Kind::none;
  Pooling pooling = Pooling::mean;
  std::vector<DenseShape> dense = {};  // of vectors, after the pooling; each takes the outputs of the one before it
  LabelHeadShape labels = {};          // of labels
  double dropout = 0;        // of labels, in [0, 1): of pooled vectors and of the inputs of the output layer, in training
  bool temperature = false;  // of vectors: whether a scalar is trained, from which the loss computes its temperature
  bool apart = false;        // whether it is trained with adapters (LoRA), while the model is frozen

  bool operator==(const TextHeadConfig&) const = default;
};

}  // namespace qkv
