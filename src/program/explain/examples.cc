// The examples that `qkv explain` shows without a file.
#include <utility>

#include "program/explain/explain.h"

namespace qkv {
namespace {

NumberTable row_table(std::vector<double> values) {
  const auto columns = static_cast<int64_t>(values.size());
  return {1, columns, std::move(values)};
}

ExplainedNorm plain_norm(size_t d, bool shifts = true) {
  return {row_table(std::vector<double>(d, 1)), shifts ? row_table(std::vector<double>(d, 0)) : NumberTable()};
}

}  // namespace

ExplainInput textbook_example() {
  const NumberTable alternating = {4, 2, {1, 0, 0, 1, 1, 0, 0, 1}}, swapped = {4, 2, {0, 1, 1, 0, 0, 1, 1, 0}};
  ExplainInput in;
  in.tokens = {"Chai", "piyo"};
  in.X = {2, 4, {1, 0, 1, 0, 0, 1, 0, 1}};
  in.attention.heads = {{alternating, swapped, alternating}};
  in.dO = {2, 2, {1, 0, 0, 1}};
  return in;
}

ExplainInput heads_example() {
  ExplainInput in = textbook_example();
  const NumberTable alternating = in.attention.heads.front().W_Q;
  in.attention.heads.push_back({alternating, alternating, alternating});
  in.attention.W_O = {4, 4, {1, 0, 0.5, 0, 0, 1, 0, 0.5, 0.5, 0, 1, 0, 0, 0.5, 0, 1}};
  in.dO = {2, 4, {1, 0, 0, 0, 0, 1, 0, 0}};
  return in;
}

ExplainInput layer_example() {
  ExplainInput in = textbook_example();
  in.attention.W_O = {2, 4, {1, 0, 0.5, 0, 0, 1, 0, 0.5}};
  in.dO = {2, 4, {1, 0, 0, 0, 0, 1, 0, 0}};
  in.layer.norms = {plain_norm(4), plain_norm(4)};
  in.layer.W_1 = {4, 4, {1, 0, -1, 0, 0, 1, 0, -1, 1, 0, 0, 1, 0, 1, 1, 0}};
  in.layer.b_1 = row_table({0, 0.5, 0, -0.5});
  in.layer.W_2 = {4, 4, {0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5}};
  in.layer.b_2 = row_table({0, 0, 0, 0});
  return in;
}

ExplainInput decoder_example() {
  ExplainInput in = layer_example();
  in.dO = {};
  in.tokens = {"<s>", "drink"};
  in.memory_tokens = {"Chai", "piyo"};
  in.memory = {2, 3, {1, 0, 0.5, 0, 1, -0.5}};
  in.attention.causal = true;
  in.attention.heads.front().b_Q = row_table({0.5, 0});
  in.attention.heads.front().b_K = row_table({0, 0.5});
  in.attention.heads.front().b_V = row_table({0, 0.5});
  in.attention.b_O = row_table({0, 0, 0, 0.5});
  ExplainedHead reads;
  reads.W_Q = {4, 2, {1, 0, 0, 1, 0.5, 0, 0, 0.5}};
  reads.W_K = {3, 2, {0, 1, 1, 0, 0.5, 0.5}};
  reads.W_V = {3, 2, {1, 0, 0, 1, 0, 0.5}};
  in.cross.heads = {reads};
  in.cross.W_O = {2, 4, {1, 0, 0, 0.5, 0, 1, 0.5, 0}};
  in.layer.norms.push_back(plain_norm(4));
  in.output.W = {4, 3, {1, 0, -1, 0, 1, 0, -1, 0.5, 0, 0.5, 0, 1}};
  in.output.b = row_table({0, 0.5, 0});
  in.output.vocabulary = {"drink", "tea", "</s>"};
  in.output.labels = {0, 1};
  return in;
}

ExplainInput language_model_example() {
  ExplainInput in = layer_example();
  in.dO = {};
  in.tokens = {"drink", "tea"};
  in.attention.causal = true;
  in.layer.position = NormPosition::pre;
  in.layer.norm = NormKind::rms;
  in.layer.norms = {plain_norm(4, false), plain_norm(4, false)};
  in.layer.activation = Activation::silu;
  in.layer.W_gate = {4, 4, {1, 0, 0, 0.5, 0, 1, 0.5, 0, 0, 0.5, 1, 0, 0.5, 0, 0, 1}};
  in.layer.b_1 = in.layer.b_gate = in.layer.b_2;
  in.output.norm = plain_norm(4, false);
  in.output.W = {4, 3, {1, 0, -1, 0, 1, 0, -1, 0.5, 0, 0.5, 0, 1}};
  in.output.vocabulary = {"drink", "tea", "</s>"};
  in.output.labels = {1, 2};
  return in;
}

ExplainInput queries_example() {
  ExplainInput in;
  in.tokens = {"q1", "q2"};
  in.memory_tokens = {"k1", "k2", "k3"};
  ExplainedHead head;
  head.Q = {2, 2, {1, 0, 0, 2}};
  head.K = {3, 2, {1, 1, 0, 1, 2, 0}};
  head.V = {3, 3, {1, 0, 0, 0, 1, 0, 2, 2, 1}};
  in.attention.heads = {head};
  in.dO = {2, 3, {1, 0, 0, 0, 1, 0}};
  return in;
}

}  // namespace qkv
