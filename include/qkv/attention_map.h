// Views of attention weights: in a terminal, as JSON, or as an HTML page.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/field.h"

namespace [[gnu::visibility("default")]] qkv {

// Contents of a map:
//   weights     attention weights
//   rollout     products of the attention of all layers up to one: Abnar and Zuidema, "Quantifying Attention Flow in
//               Transformers" (2020). Heads are averaged, and a residual connection counts as much as its attention:
//               A' = (A + I) / 2. In a decoder with cross-attention it does so, too: of the next tokens' shares, half are
//               those of the encoder's rollout.
//   flow        attention flow, of the same paper: the maximum flow from each token after a layer to each input, if A' are
//               the capacities of the edges between the layers, divided by the sum over all inputs
//   gradient    gradient × input: what log p of a token changes with each input token's embedding, to first order
//   integrated  integrated gradients: the same, averaged from the embeddings of a baseline to the real ones. Their sum is
//               the change of log p. Sundararajan et al., "Axiomatic Attribution for Deep Networks" (2017).
enum class AttentionMethod { weights, rollout, flow, gradient, integrated };
constexpr std::array<std::string_view, 5> names_of(AttentionMethod) {
  return {"weights", "rollout", "flow", "gradient", "integrated"};
}

struct AttributionOptions {
  AttentionMethod method = AttentionMethod::weights;
  int64_t steps = 50;
  std::string baseline = "";
};

template <class Visitor>
void visit_fields(AttributionOptions& o, Visitor&& visit) {
  visit("method", o.method,
        {"What the map shows: attention weights, their rollout or flow over the layers, or attributions of log p of each "
         "token: gradient times input or integrated gradients",
         "attribution", {}, kCommon});
  visit("steps", o.steps,
        {"Points at which integrated gradients takes the gradient (Gauss-Legendre)", "attribution", between(1, 1000)});
  visit("baseline", o.baseline,
        {"Text whose first token takes the place of every token in the baseline of attributions; default: embeddings of "
         "zeros",
         "attribution"});
}

// The weights of one head: rows × columns, row-major. Each row is a distribution over the columns, in rollout, flow and
// attribution over those of all kinds of the same row together. The weights of attributions are shares: their absolute
// values, divided by the sum.
struct AttentionHead {
  std::vector<float> weights;
  std::vector<float> values = {};  // attributions with their signs, in nats; empty for other methods
};

// One kind of attention ("encoder", "decoder" or "cross"): each row token attends to the column tokens.
struct AttentionKind {
  std::string name;
  bool causal = false;
  std::vector<std::string> rows, columns;          // sub-word pieces; "▁" begins a word
  std::vector<std::vector<AttentionHead>> layers;  // [layer][head]
  AttentionMethod method = AttentionMethod::weights;
};

// The sum of the attributions of one token, which for integrated gradients is log_probability − baseline, but for the
// error of the integral.
struct TokenAttribution {
  std::string piece;
  double log_probability = 0;  // of the token
  double baseline = 0;         // its log-probability with the embeddings of the baseline
  double sum = 0;              // of its attributions
};

struct AttentionMap {
  std::string source, target;  // source and target sentence; for a language model, text and continuation
  std::vector<AttentionKind> kinds;
  std::vector<TokenAttribution> tokens = {};  // that are attributed, one for each row; empty for other methods
};

// Merges sub-words into words. Sums the weights of a word's columns and averages those of its rows, so that rows still
// sum to 1. Values are summed over rows, too: log p of a word is the sum of its pieces'.
AttentionMap merge_words(const AttentionMap& map);

struct AttentionTextOptions {
  bool mean = false;     // the mean of all heads of the layer instead of one head
  bool numbers = false;  // weights with two digits after the point instead of shades
};

// Returns a terminal view of one layer and head, counted from 0: one line per row token, Unicode shades for weights,
// column tokens above. Throws Error for a layer or a head that does not exist.
std::string attention_to_text(const AttentionKind& kind, int layer, int head, const AttentionTextOptions& options = {});

// Returns JSON with every weight: {"source", "target", "attention": [{"kind", "rows", "columns", "layers": [[[[w …] …]
// …] …]}]}. A method other than weights adds "method" to each kind, and attributions add "values" to each kind, like
// "layers", and "tokens": [{"piece", "log_probability", "baseline", "sum"} …] at the end.
std::string attention_to_json(const AttentionMap& map);

// Returns one self-contained HTML page, which needs no network: for each kind a layers × heads grid with tokens on both
// axes, values on hover, and an option to merge sub-words into words.
std::string attention_to_html(const AttentionMap& map);

}  // namespace qkv
