#include "program/explain/check.h"

#include <cmath>

#include "core/fail.h"

namespace qkv {
namespace {

class ShapeCheck {
 public:
  explicit ShapeCheck(std::string where) : where_(std::move(where)) {}

  void require(const NumberTable& table, const std::string& name, int64_t rows, int64_t columns) const {
    if (table.rows != rows || table.columns != columns)
      fail("{}: {} is {} × {}, expected {} × {}", where_, name, table.rows, table.columns, rows, columns);
    values(table, name);
  }
  void size(const NumberTable& table, const std::string& name) const {
    const auto fits = [](int64_t count) { return count >= 1 && count <= kLargestTable; };
    if (!fits(table.rows) || !fits(table.columns))
      fail("{}: {} is {} × {}, expected 1 to {} rows and columns", where_, name, table.rows, table.columns,
           kLargestTable);
    values(table, name);
  }
  void optional(const NumberTable& table, const std::string& name, int64_t rows, int64_t columns) const {
    if (!table.empty()) require(table, name, rows, columns);
  }
  void absent(bool given, const std::string& name, const char* where) const {
    if (given) wrong("{} is given {}, expected none", name, where);
  }
  ShapeCheck inside(const std::string& member) const { return ShapeCheck(where_ + ": " + member); }
  void labels(const std::vector<std::string>& labels, const std::string& name, int64_t count) const {
    check_labels(labels, name, count, where_);
  }
  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail("{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void values(const NumberTable& table, const std::string& name) const {
    if (std::ssize(table.values) != table.rows * table.columns)
      fail("{}: {} has {} values, expected {} × {}", where_, name, table.values.size(), table.rows, table.columns);
  }

  std::string where_;
};

// Heads with weights read rows of width d, and keys and values rows of width d_z. Those with Q, K and V have T and S.
struct HeadShape {
  int64_t d, d_z, T, S;
};

void check_weights(const ExplainedHead& head, const ExplainedAttention& in, const HeadShape& shape,
                   const ShapeCheck& check) {
  const int64_t d_k = in.key_width(), d_v = in.value_width();
  check.require(head.W_Q, "W_Q", shape.d, d_k);
  check.require(head.W_K, "W_K", shape.d_z, d_k);
  check.require(head.W_V, "W_V", shape.d_z, d_v);
  check.optional(head.b_Q, "b_Q", 1, d_k);
  check.optional(head.b_K, "b_K", 1, d_k);
  check.optional(head.b_V, "b_V", 1, d_v);
  if (!head.Q.empty() || !head.K.empty() || !head.V.empty())
    check.wrong("some of Q, K and V are given, expected all three in each head, or weights in each head");
}

void check_queries(const ExplainedHead& head, const ExplainedAttention& in, const HeadShape& shape,
                   const ShapeCheck& check) {
  check.require(head.Q, "Q", shape.T, in.key_width());
  check.require(head.K, "K", shape.S, in.key_width());
  check.require(head.V, "V", shape.S, in.value_width());
  for (const auto& [table, name] : {std::pair{&head.W_Q, "W_Q"},
                                    {&head.W_K, "W_K"},
                                    {&head.W_V, "W_V"},
                                    {&head.b_Q, "b_Q"},
                                    {&head.b_K, "b_K"},
                                    {&head.b_V, "b_V"}})
    check.absent(!table->empty(), name, "with Q, K and V");
}

void check_attention(const ExplainedAttention& in, const HeadShape& shape, const ShapeCheck& check) {
  if (std::ssize(in.heads) > kMostHeads) check.wrong("{} heads, expected 1 to {}", in.heads.size(), kMostHeads);
  const ExplainedHead& first = in.heads.front();
  check.size(in.has_weights() ? first.W_Q : first.Q, in.has_weights() ? "W_Q" : "Q");
  check.size(in.has_weights() ? first.W_V : first.V, in.has_weights() ? "W_V" : "V");
  for (const ExplainedHead& head : in.heads)
    in.has_weights() ? check_weights(head, in, shape, check) : check_queries(head, in, shape, check);
  if (!std::isfinite(in.scale)) check.wrong("scale is not finite");
  check.optional(in.mask, "mask", shape.T, shape.S);
  if (!in.W_O.empty()) {
    check.size(in.W_O, "W_O");
    check.require(in.W_O, "W_O", std::ssize(in.heads) * in.value_width(), in.has_weights() ? shape.d : in.W_O.columns);
  }
  check.absent(!in.b_O.empty() && in.W_O.empty(), "b_O", "without W_O");
  check.optional(in.b_O, "b_O", 1, in.W_O.columns);
}

void check_norm(const ExplainedNorm& norm, NormKind kind, const std::string& suffix, int64_t d,
                const ShapeCheck& check) {
  check.require(norm.gamma, "gamma" + suffix, 1, d);
  check.absent(kind == NormKind::rms && !norm.beta.empty(), "beta" + suffix, "with the norm rms");
  if (kind != NormKind::rms) check.require(norm.beta, "beta" + suffix, 1, d);
}

void check_feed_forward(const ExplainedLayer& layer, int64_t d, const ShapeCheck& check) {
  const int64_t F = layer.W_1.columns;
  check.size(layer.W_1, "W_1");
  check.require(layer.W_1, "W_1", d, F);
  check.require(layer.b_1, "b_1", 1, F);
  check.require(layer.W_2, "W_2", F, d);
  check.require(layer.b_2, "b_2", 1, d);
  check.absent(!layer.b_gate.empty() && layer.W_gate.empty(), "b_gate", "without W_gate");
  if (layer.W_gate.empty()) return;
  check.require(layer.W_gate, "W_gate", d, F);
  check.require(layer.b_gate, "b_gate", 1, F);
}

void check_layer(const ExplainInput& in, const ShapeCheck& check) {
  const ExplainedLayer& layer = in.layer;
  const int64_t d = in.X.columns;
  check.absent(in.X.empty(), "layer", "without X");
  for (const ExplainedAttention* attention : {&in.attention, &in.cross})
    if (!attention->empty() && attention->output_width() != d)
      check.wrong("layer: the attention's output has width {}, expected that of X, {}: give W_O",
                  attention->output_width(), d);
  const ShapeCheck of_layer = check.inside("layer");
  if (!(layer.epsilon > 0)) of_layer.wrong("epsilon is {}, expected a number above 0", layer.epsilon);
  check_feed_forward(layer, d, of_layer);
  const size_t sublayers = in.cross.empty() ? 2 : 3;
  if (layer.norms.size() != sublayers)
    of_layer.wrong("{} norms, expected {}, one for each sublayer", layer.norms.size(), sublayers);
  for (size_t k = 0; k < sublayers; k++) check_norm(layer.norms[k], layer.norm, fmt::format("_{}", k + 1), d, of_layer);
}

void check_output(const ExplainInput& in, int64_t T, int64_t width, const ShapeCheck& check) {
  const ExplainedOutput& output = in.output;
  check.size(output.W, "W");
  check.require(output.W, "W", width, output.W.columns);
  check.optional(output.b, "b", 1, output.W.columns);
  check.labels(output.vocabulary, "vocabulary", output.W.columns);
  check.absent(output.norm.gamma.empty() && !output.norm.beta.empty(), "beta", "without gamma");
  if (!output.norm.gamma.empty()) check_norm(output.norm, in.layer.norm, "", width, check);
  if (!(output.smoothing >= 0 && output.smoothing < 1))
    check.wrong("label_smoothing is {}, expected a number from 0 to below 1", output.smoothing);
  if (output.labels.empty()) return;
  if (std::ssize(output.labels) != T) check.wrong("{} labels, expected {}", output.labels.size(), T);
  for (const int32_t label : output.labels)
    if (label < 0 || label >= output.W.columns)
      check.wrong("label {}, expected 0 to {}, or a token of the vocabulary", label, output.W.columns - 1);
}

// A part without its first matrix is absent, and so must be the rest of it.
void check_absent_parts(const ExplainInput& in, const ShapeCheck& check) {
  const ExplainedAttention& cross = in.cross;
  const bool has_cross = !cross.W_O.empty() || !cross.b_O.empty() || !cross.mask.empty();
  check.absent(cross.empty() && has_cross, "cross", "without heads");
  const ExplainedLayer& layer = in.layer;
  const bool has_layer = !layer.norms.empty() || !layer.b_1.empty() || !layer.W_gate.empty() || !layer.b_gate.empty() ||
                         !layer.W_2.empty() || !layer.b_2.empty();
  check.absent(layer.empty() && has_layer, "layer", "without W_1");
  const ExplainedOutput& output = in.output;
  const bool has_output = !output.norm.gamma.empty() || !output.norm.beta.empty() || !output.b.empty() ||
                          !output.vocabulary.empty() || !output.labels.empty();
  check.absent(output.empty() && has_output, "output", "without W");
}

// Returns the shapes that the first attention reads.
HeadShape check_rows(const ExplainInput& in, const ShapeCheck& check) {
  if (in.attention.empty()) check.wrong("0 heads, expected 1 to {}", kMostHeads);
  if (!in.attention.has_weights()) {
    const ExplainedHead& head = in.attention.heads.front();
    check.absent(!in.X.empty(), "X", "with Q, K and V");
    check.absent(!in.memory.empty(), "memory", "with Q, K and V");
    check.labels(in.tokens, "tokens", head.Q.rows);
    check.labels(in.memory_tokens, "memory_tokens", head.K.rows);
    if (in.attention.causal && head.Q.rows != head.K.rows)
      check.wrong("causal is true, expected false where Q has {} rows and K has {}", head.Q.rows, head.K.rows);
    return {0, 0, head.Q.rows, head.K.rows};
  }
  check.size(in.X, "X");
  check.labels(in.tokens, "tokens", in.X.rows);
  const int64_t d = in.X.columns, T = in.X.rows;
  if (in.memory.empty()) {
    check.absent(!in.memory_tokens.empty(), "memory_tokens", "without memory");
    return {d, d, T, T};
  }
  check.size(in.memory, "memory");
  check.labels(in.memory_tokens, "memory_tokens", in.memory.rows);
  if (!in.cross.empty()) return {d, d, T, T};
  if (in.attention.causal) check.wrong("causal is true, expected false with a memory");
  return {d, in.memory.columns, T, in.memory.rows};
}

}  // namespace

void check_labels(const std::vector<std::string>& labels, const std::string& name, int64_t count,
                  const std::string& where) {
  if (std::ssize(labels) != count) fail("{}: {} has {} labels, expected {}", where, name, labels.size(), count);
}

void check_explain_input(const ExplainInput& in, const std::string& where) {
  const ShapeCheck check(where);
  const HeadShape shape = check_rows(in, check);
  check_absent_parts(in, check);
  check_attention(in.attention, shape, check);
  int64_t width = in.attention.output_width();
  if (!in.cross.empty()) {
    check.absent(in.memory.empty(), "cross", "without memory");
    check.absent(in.layer.empty(), "cross", "without layer");
    check.absent(!in.cross.has_weights(), "cross", "with Q, K and V");
    const HeadShape reads_memory = {in.X.columns, in.memory.columns, in.X.rows, in.memory.rows};
    check_attention(in.cross, reads_memory, check.inside("cross"));
  }
  if (!in.layer.empty()) check_layer(in, check);
  if (!in.output.empty()) check_output(in, shape.T, width, check.inside("output"));
  check.absent(!in.dO.empty() && !in.output.labels.empty(), "dO", "with labels, whose loss has a gradient");
  if (!in.output.empty()) width = in.output.W.columns;
  check.optional(in.dO, "dO", shape.T, width);
}

}  // namespace qkv
