// The equations of attention step by step on small matrices: every intermediate result, computed by the ops of the
// library in float64. "Attention Is All You Need", section 3; docs/math.md.
//
// Matrices are written as in the paper: a row of X is a token, and Q = X W_Q with W_Q of shape [d, d_k].
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/config.h"

namespace qkv {

// A small matrix, row by row. In results −∞ is the score of a hidden key.
struct NumberTable {
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};

  bool empty() const { return rows == 0 && columns == 0 && values.empty(); }
  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * columns + c)]; }
};

// One head. Either its weights, W_Q: [d, d_k], W_K: [d_z, d_k], W_V: [d_z, d_v], where keys and values come from rows
// of width d_z, with biases b_Q, b_K: [1, d_k], b_V: [1, d_v], which may be empty. Or Q: [T, d_k], K: [S, d_k] and
// V: [S, d_v] themselves.
struct ExplainedHead {
  NumberTable W_Q = {}, W_K = {}, W_V = {};
  NumberTable b_Q = {}, b_K = {}, b_V = {};
  NumberTable Q = {}, K = {}, V = {};

  bool has_weights() const { return Q.empty(); }
  int64_t key_width() const { return has_weights() ? W_Q.columns : Q.columns; }
  int64_t value_width() const { return has_weights() ? W_V.columns : V.columns; }
};

// Multi-head attention: self-attention, or the cross-attention of a decoder layer.
struct ExplainedAttention {
  std::vector<ExplainedHead> heads = {};  // H, with the same d_k and d_v
  NumberTable W_O = {};                   // [H d_v, d]; empty: the output is that of the heads, side by side
  NumberTable b_O = {};                   // [1, d]; may be empty
  bool causal = false;                    // token i sees tokens up to i
  NumberTable mask = {};                  // [T, S], added to the scaled scores; −∞ hides a key; may be empty
  double scale = 0;                       // of the scores; 0 means 1 / √d_k

  bool empty() const { return heads.empty(); }
  bool has_weights() const { return heads.front().has_weights(); }
  int64_t key_width() const { return heads.front().key_width(); }
  int64_t value_width() const { return heads.front().value_width(); }
  int64_t output_width() const;
  double factor() const;  // of the scores
};

// The gain and shift of a norm, [1, d]. RMSNorm has no shift.
struct ExplainedNorm {
  NumberTable gamma = {}, beta = {};
};

// The rest of a layer besides its attention: a norm for each sublayer, residual sums, the feed-forward network.
struct ExplainedLayer {
  std::vector<ExplainedNorm> norms = {};       // of the 2 sublayers of an encoder layer, the 3 of a decoder layer
  NumberTable W_1 = {}, b_1 = {};              // [d, F], [1, F]
  NumberTable W_gate = {}, b_gate = {};        // [d, F], [1, F]; empty: no gate
  NumberTable W_2 = {}, b_2 = {};              // [F, d], [1, d]
  NormPosition position = NormPosition::post;  // or pre
  NormKind norm = NormKind::layer;             // or rms
  Activation activation = Activation::relu;
  double epsilon = 1e-5;  // of the norms

  bool empty() const { return W_1.empty(); }
};

// The layer that turns the output into logits of a vocabulary of V tokens, and their loss.
struct ExplainedOutput {
  ExplainedNorm norm = {};                   // before it, of the layer's kind; may be empty
  NumberTable W = {}, b = {};                // [d, V], [1, V]; b may be empty
  std::vector<std::string> vocabulary = {};  // [V]
  std::vector<int32_t> labels = {};          // [T], the token to predict in each row; may be empty
  double smoothing = 0;                      // of the labels

  bool empty() const { return W.empty(); }
};

// The matrices that are explained. T tokens attend to S tokens: to themselves, or to those of `memory`
// (cross-attention). With `cross` the first attention is self-attention, and `cross` reads the memory.
struct ExplainInput {
  std::vector<std::string> tokens = {}, memory_tokens = {};  // [T], [S]: labels
  NumberTable X = {}, memory = {};  // [T, d], [S, d_z]; both are empty if the heads have Q, K and V
  ExplainedAttention attention = {};
  ExplainedAttention cross = {};  // may be empty
  ExplainedLayer layer = {};      // may be empty; requires X, and an attention output of width d
  ExplainedOutput output = {};    // may be empty
  NumberTable dO = {};            // gradient of the output, in its shape; empty: no backward pass, or from the loss
  bool columns = false;           // show tokens as columns

  bool has_gradient() const { return !dO.empty() || !output.labels.empty(); }
};

// The ways in which the entries of a step follow from earlier steps: A, B, C and D are those of `of`.
enum class StepKind {
  given,                // in the input, at `path`
  constant,             // of the input, not to be edited
  sum,                  // of `terms`
  difference,           // A − B
  times,                // A ∘ B
  scaled,               // `number` A
  masked,               // A + B, and −∞ in the future of a token if `flag`; B may be absent
  exponential,          // exp(A), or exp(A − the largest of the row) if that of a row is beyond ± `number`
  row_sums,             // Σⱼ Aᵢⱼ
  shares,               // A divided by the row sums B
  jacobian,             // of the softmax, of row `index` of A
  row_products,         // row i of A times the i-th of the other matrices
  columns,              // of A, from column `index` on
  side_by_side,         // A, B, …
  statistics,           // of rows: μ and σ; only σ of RMSNorm, if `flag`. `number` is ε
  norm,                 // of rows A with statistics B, gain C and shift D, which may be absent
  norm_gradient,        // dA, from the gradient A of the norm, its rows B, statistics C and gain D
  gain_gradient,        // from the gradient A of the norm, its rows B and statistics C
  column_sums,          // Σᵢ Aᵢⱼ
  activation,           // φ(A)
  activation_gradient,  // φ′(A) ∘ B
  losses,               // −Σⱼ Bᵢⱼ log softmax(A)ᵢⱼ
  largest,              // of each row of A; the row labels name its column
};
constexpr std::array<std::string_view, 23> names_of(StepKind) {
  return {
      "given",       "constant", "sum",           "difference",    "times",        "scaled",     "masked",
      "exponential", "row_sums", "shares",        "jacobian",      "row_products", "columns",    "side_by_side",
      "statistics",  "norm",     "norm_gradient", "gain_gradient", "column_sums",  "activation", "activation_gradient",
      "losses",      "largest"};
}

// A term of a sum: a matrix, a product of two, or a row that is added to each row.
struct StepTerm {
  std::string left = {}, right = {};  // ids; an empty right: no product
  bool left_transposed = false, right_transposed = false;
  bool repeated = false;  // a row
};

struct StepOrigin {
  StepKind kind = StepKind::constant;
  std::vector<std::string> of = {};  // ids
  std::vector<StepTerm> terms = {};
  double number = 0;
  int64_t index = 0;
  bool flag = false;
  Activation activation = Activation::relu;
  std::vector<std::string> path = {};  // names of members, and places in arrays
};

// One equation and its result. An empty formula: the values are given.
struct ExplainedStep {
  std::string id;                                      // unique, such as "head1.scores"
  std::string name, formula;                           // "S", "Q Kᵀ"
  std::vector<std::string> row_labels, column_labels;  // empty: none
  NumberTable values;
  std::string note = {};
  StepOrigin origin = {};
  std::vector<std::string> arithmetic = {};  // of each value, such as "1×1 + 0×2 = 1"; empty: none
};

// Symbols of the two forms, and their meaning.
struct ExplainedSymbol {
  std::string rows, columns, meaning;
};

struct ExplainedSection {
  std::string title;
  std::vector<ExplainedStep> steps;
  std::vector<ExplainedSymbol> symbols = {};
};

using Explanation = std::vector<ExplainedSection>;

// Two words, one head, d = 4, d_k = d_v = 2: the example of textbooks.
ExplainInput textbook_example();
// The same with a second head, in which each word attends to itself, and W_O.
ExplainInput heads_example();
// The first with W_O and the rest of an encoder layer, F = 4.
ExplainInput layer_example();
// A decoder layer with biases that reads a memory of another width, and the output layer with a loss.
ExplainInput decoder_example();
// A layer of a language model with pre-norm, RMSNorm and a gate (SwiGLU), and the output layer with a loss.
ExplainInput language_model_example();
// Q, K and V themselves, of two queries and three keys, d_k = 2, d_v = 3.
ExplainInput queries_example();

// Reads JSON: {"X", "heads": [{"W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"}, …]} or {"heads": [{"Q", "K", "V"}, …]}, and
// optionally "tokens", "memory", "memory_tokens", "W_O", "b_O", "causal", "mask", "scale", "cross", "layer", "output",
// "dO" and "form"; docs/explain.md has all members. With one head its matrices may stand next to X. A matrix is an
// array of rows; null in a mask is −∞; biases are 0 and gains 1 if absent. A matrix has at most 64 rows and columns.
// `where` names the text in errors. Throws Error, naming the member, for a value that is not as described.
ExplainInput explain_input_from_json(std::string_view text, const std::string& where);
// Throws Error as explain_attention does.
std::string explain_input_to_json(const ExplainInput& input);

// Parts of an explanation that can be left out.
struct ExplainChoice {
  bool backward = false;    // the gradients: of the loss if there are labels, otherwise from dO
  bool arithmetic = false;  // of each value
};

// The steps of the forward pass: projections, scores, scaling, mask, exponentials, row sums, weights, output of each
// head; then the layer and the output layer. Those of the backward pass: all gradients, with dV, dA, the Jacobian of
// each row's softmax, dS, dQ and dK. Steps have notes, sentences of what their
// numbers say. Throws Error if shapes do not fit, a result is not finite, a backward pass has no gradient to begin
// with, the steps have more than 2,000,000 numbers, or the arithmetic is longer than about 46 MB.
Explanation explain_attention(const ExplainInput& input, const ExplainChoice& choice);

// Sinusoidal positions 0 to count − 1 of width d (2 to 1,024, even), and the dot products of two of them by distance,
// which are the same at every position.
ExplainedSection explain_positions(int64_t d, int64_t count);

// Why scores are divided by √d_k: random queries and keys of variance 1 for d_k = 4, 8, … 1,024, through the attention
// op in float32. A row for each d_k, without the factor 1/√d_k and with it: variance of the scores; entropy of the
// weights of a query over 64 keys, divided by log 64, the largest possible; length of the gradient of the scores of a
// query, for gradients of the output of variance 1.
ExplainedSection explain_scaling(uint64_t seed = 1);

// The steps for a terminal, as JSON {"sections": [{"title", "steps": [{"id", "name", "formula", "values"}]}]} with null
// for −∞, and as one page that needs no network, in which X and the weights can be edited and all steps follow. The
// page has the arithmetic of each value, too, and the notes until a number is edited.
std::string explanation_to_text(const Explanation& explanation);
std::string explanation_to_json(const Explanation& explanation);
std::string explanation_to_html(const ExplainInput& input, bool backward);

}  // namespace qkv
