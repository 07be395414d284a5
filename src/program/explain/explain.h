// The equations of attention step by step on small matrices: every intermediate result, computed by the ops of the
// library in float64. "Attention Is All You Need", section 3; docs/math.md.
//
// Matrices are written as in the paper: a row of X is a token, and Q = X W_Q with W_Q of shape [d, d_k].
#pragma once

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

  bool empty() const { return values.empty(); }
  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * columns + c)]; }
};

// The weights of one head. W_Q, W_K: [d, d_k]; W_V: [d, d_v].
struct ExplainedHead {
  NumberTable W_Q, W_K, W_V;
};

// The rest of an encoder layer after its attention, with norms after the residual sums.
struct ExplainedLayer {
  NumberTable gamma_1, beta_1;  // [1, d], of the first norm
  NumberTable W_1, b_1;         // [d, F], [1, F]
  NumberTable W_2, b_2;         // [F, d], [1, d]
  NumberTable gamma_2, beta_2;  // [1, d], of the second norm
  Activation activation = Activation::relu;
  double epsilon = 1e-5;  // of the norms

  bool empty() const { return W_1.empty(); }
};

// The matrices that are explained. T tokens attend to S tokens: to themselves, or to those of `memory`
// (cross-attention).
struct ExplainInput {
  std::vector<std::string> tokens, memory_tokens;  // [T], [S]: labels
  NumberTable X, memory;                           // [T, d], [S, d]; an empty memory means self-attention
  std::vector<ExplainedHead> heads;                // H, with the same d_k and d_v
  NumberTable W_O;                                 // [H d_v, d]; empty: the output is that of the heads, side by side
  bool causal = false;                             // token i sees tokens up to i
  NumberTable mask;      // [T, S], added to the scaled scores; −∞ hides a key; may be empty
  double scale = 0;      // of the scores; 0 means 1 / √d_k
  NumberTable dO;        // gradient of the output: of the layer's, N_2: [T, d]; without a layer of the attention's:
                         // [T, d] with W_O, otherwise [T, H d_v]; empty: no backward pass
  ExplainedLayer layer;  // may be empty; requires an output of width d

  int64_t key_width() const { return heads.front().W_Q.columns; }
  int64_t value_width() const { return heads.front().W_V.columns; }
  double factor() const;  // of the scores
};

// One equation and its result. An empty formula: the values are given.
struct ExplainedStep {
  std::string id;                                      // unique, such as "head1.scores"
  std::string name, formula;                           // "S", "Q Kᵀ"
  std::vector<std::string> row_labels, column_labels;  // empty: none
  NumberTable values;
  std::string note = {};
};

struct ExplainedSection {
  std::string title;
  std::vector<ExplainedStep> steps;
};

using Explanation = std::vector<ExplainedSection>;

// Two words, one head, d = 4, d_k = d_v = 2: the example of textbooks.
ExplainInput textbook_example();
// The same with W_O and the rest of an encoder layer, F = 4.
ExplainInput layer_example();

// Reads JSON: {"X", "heads": [{"W_Q", "W_K", "W_V"}, …]} and optionally "tokens", "memory", "memory_tokens", "W_O",
// "causal", "mask", "scale", "dO" and "layer": {"W_1", "b_1", "W_2", "b_2", "gamma_1", "beta_1", "gamma_2", "beta_2",
// "activation", "epsilon"}, by the names and shapes above. With one head its matrices may stand next to X. A matrix is
// an array of rows; null in the mask is −∞; biases are 0 and gains 1 if absent. A matrix has at most 64 rows and
// columns. `where` names the text in errors. Throws Error, naming the member, for a value that is not as described, and
// for results that are not finite.
ExplainInput explain_input_from_json(std::string_view text, const std::string& where);
// Throws Error as explain_attention does.
std::string explain_input_to_json(const ExplainInput& input);

// The steps of the forward pass: projections, scores, scaling, mask, exponentials, row sums, weights, output of each
// head; then the layer. With dO also those of the backward pass: of the layer's norms and feed-forward network; dV, dA,
// the Jacobian of each row's softmax, dS, dQ, dK, the gradients of the weights, of X and of the memory. Throws Error if
// shapes do not fit or a result is not finite.
Explanation explain_attention(const ExplainInput& input);

// Sinusoidal positions 0 to count − 1 of width d (2 to 1,024, even), and the dot products of two of them by distance,
// which are the same at every position.
ExplainedSection explain_positions(int64_t d, int64_t count);

// Why scores are divided by √d_k: random queries and keys of variance 1 for d_k = 4, 8, … 1,024, through the attention
// op in float32. A row for each d_k, with and without the scale: variance of the scores; entropy of the weights as a
// share of the largest possible; norm of the gradient of a query's scores, for gradients of the output of variance 1.
ExplainedSection explain_scaling(uint64_t seed = 1);

// The steps for a terminal, as JSON {"sections": [{"title", "steps": [{"id", "name", "formula", "values"}]}]} with null
// for −∞, and as one page that needs no network, in which X and the weights can be edited and all steps follow.
std::string explanation_to_text(const Explanation& explanation);
std::string explanation_to_json(const Explanation& explanation);
std::string explanation_to_html(const ExplainInput& input);

}  // namespace qkv
