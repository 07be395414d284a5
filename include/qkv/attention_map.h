// Views of attention weights: in a terminal, as JSON, or as an HTML page.
#pragma once

#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

// The weights of one head: rows × columns, row-major. Each row is a distribution over the columns.
struct AttentionHead {
  std::vector<float> weights;
};

// One kind of attention ("encoder", "decoder" or "cross"): each row token attends to the column tokens.
struct AttentionKind {
  std::string name;
  bool causal = false;
  std::vector<std::string> rows, columns;          // sub-word pieces; "▁" begins a word
  std::vector<std::vector<AttentionHead>> layers;  // [layer][head]
};

struct AttentionMap {
  std::string source, target;  // source and target sentence; for a language model, text and continuation
  std::vector<AttentionKind> kinds;
};

// Merges sub-words into words. Sums the weights of a word's columns and averages those of its rows, so that rows still
// sum to 1.
AttentionMap merge_words(const AttentionMap& map);

// Returns a terminal view of one layer and head: one line per row token, Unicode shades for weights, column tokens
// above.
std::string attention_to_text(const AttentionKind& kind, int layer, int head);

// Returns JSON with every weight: {"source", "target", "attention": [{"kind", "rows", "columns", "layers": [[[[w …] …]
// …] …]}]}.
std::string attention_to_json(const AttentionMap& map);

// Returns one self-contained HTML page, which needs no network: for each kind a layers × heads grid with tokens on both
// axes, values on hover, and an option to merge sub-words into words.
std::string attention_to_html(const AttentionMap& map);

}  // namespace qkv
