// Inputs of `qkv explain` with random matrices, and the steps of their explanations.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/random.h"
#include "program/explain/explain.h"
#include "qkv/error.h"

namespace qkv::testing {

inline const ExplainedStep& step_of(const Explanation& explanation, const std::string& id) {
  for (const ExplainedSection& section : explanation)
    for (const ExplainedStep& step : section.steps)
      if (step.id == id) return step;
  throw Error("no step " + id);
}

inline NumberTable random_table(int64_t rows, int64_t columns, Random& random) {
  NumberTable table{rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
  for (double& value : table.values) value = random.normal();
  return table;
}

inline ExplainedHead random_head(int64_t d, int64_t d_z, bool biases, Random& random) {
  ExplainedHead head;
  head.W_Q = random_table(d, 3, random), head.W_K = random_table(d_z, 3, random);
  head.W_V = random_table(d_z, 2, random);
  if (!biases) return head;
  head.b_Q = random_table(1, 3, random), head.b_K = random_table(1, 3, random);
  head.b_V = random_table(1, 2, random);
  return head;
}

// Two heads over three tokens, of which the mask hides one from another. A memory is wider than the tokens.
inline ExplainInput random_input(bool cross) {
  Random random(1, Stream::test);
  ExplainInput in;
  in.tokens = {"a", "b", "c"};
  in.X = random_table(3, 4, random);
  if (cross) in.memory_tokens = {"u", "v"}, in.memory = random_table(2, 5, random);
  for (int h = 0; h < 2; h++) in.attention.heads.push_back(random_head(4, cross ? 5 : 4, h == 0, random));
  in.attention.W_O = random_table(4, 4, random);
  in.attention.b_O = random_table(1, 4, random);
  in.attention.mask = random_table(3, cross ? 2 : 3, random);
  in.attention.mask.at(1, 0) = -std::numeric_limits<double>::infinity();
  in.attention.causal = !cross;
  in.dO = random_table(3, 4, random);
  return in;
}

// Q, K and V themselves.
inline ExplainInput random_queries() {
  Random random(3, Stream::test);
  ExplainInput in;
  in.tokens = {"a", "b"};
  in.memory_tokens = {"u", "v", "w"};
  for (int h = 0; h < 2; h++) {
    ExplainedHead head;
    head.Q = random_table(2, 3, random), head.K = random_table(3, 3, random), head.V = random_table(3, 2, random);
    in.attention.heads.push_back(head);
  }
  in.attention.W_O = random_table(4, 5, random);
  in.dO = random_table(2, 5, random);
  return in;
}

inline ExplainedNorm random_norm(NormKind kind, Random& random) {
  ExplainedNorm norm{random_table(1, 4, random), {}};
  if (kind == NormKind::layer) norm.beta = random_table(1, 4, random);
  return norm;
}

// `in` as the attention of a layer of random weights.
inline ExplainInput in_layer(ExplainInput in, Activation kind, NormPosition position = NormPosition::post,
                             NormKind norm = NormKind::layer) {
  Random random(2, Stream::test);
  ExplainedLayer& layer = in.layer;
  layer.W_1 = random_table(4, 5, random), layer.b_1 = random_table(1, 5, random);
  layer.W_2 = random_table(5, 4, random), layer.b_2 = random_table(1, 4, random);
  layer.norms = {random_norm(norm, random), random_norm(norm, random)};
  layer.position = position;
  layer.norm = norm;
  layer.activation = kind;
  layer.epsilon = 0.1;
  return in;
}

inline ExplainInput with_gate(ExplainInput in) {
  Random random(4, Stream::test);
  in.layer.W_gate = random_table(4, 5, random), in.layer.b_gate = random_table(1, 5, random);
  return in;
}

// A decoder layer: two heads of causal self-attention and one of cross-attention, with a mask, on a wider memory.
inline ExplainInput random_decoder(NormPosition position, NormKind norm) {
  ExplainInput in = in_layer(random_input(false), Activation::gelu, position, norm);
  Random random(5, Stream::test);
  in.memory_tokens = {"u", "v"};
  in.memory = random_table(2, 5, random);
  in.cross.heads = {random_head(4, 5, true, random)};
  in.cross.W_O = random_table(2, 4, random);
  in.cross.b_O = random_table(1, 4, random);
  in.cross.mask = random_table(3, 2, random);
  in.cross.scale = 0.7;
  in.layer.norms.push_back(random_norm(norm, random));
  return in;
}

// `in` with an output layer, and labels whose loss is differentiated.
inline ExplainInput with_output(ExplainInput in, double smoothing, bool norm) {
  Random random(6, Stream::test);
  in.output.W = random_table(4, 5, random);
  if (!norm) in.output.b = random_table(1, 5, random);
  if (norm) in.output.norm = random_norm(in.layer.norm, random);
  in.output.vocabulary = {"v", "w", "x", "y", "z"};
  in.output.labels = {4, 0, 2};
  in.output.smoothing = smoothing;
  in.dO = {};
  return in;
}

}  // namespace qkv::testing
