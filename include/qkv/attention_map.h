// Attention weights as something to look at: drawn in a terminal, as JSON, or as one HTML page.
#pragma once

#include <string>
#include <vector>

namespace qkv {

// The weights of one head: row i is a distribution over the columns; rows × columns, row-major.
struct AttentionHead {
  std::vector<float> weights;
};

// One kind of attention ("encoder", "decoder", "cross"): what each row token looks at among the column tokens.
struct AttentionKind {
  std::string name;
  bool causal = false;
  std::vector<std::string> rows, columns;          // sub-word pieces; "▁" begins a word
  std::vector<std::vector<AttentionHead>> layers;  // [layer][head]
};

struct AttentionMap {
  std::string source, target;  // the sentences; a language model's text, and what it goes on with
  std::vector<AttentionKind> kinds;
};

// Sub-words merged to words: weights of a word's columns are summed, those of its rows averaged, so rows still sum
// to 1.
AttentionMap merge_words(const AttentionMap& map);

// Terminal view of one layer and head: one row a token, unicode shades by weight, column tokens above.
std::string attention_to_text(const AttentionKind& kind, int layer, int head);

// JSON with every weight: {"source", "target", "attention": [{"kind", "rows", "columns", "layers": [[[[w …] …] …]
// …]}]}.
std::string attention_to_json(const AttentionMap& map);

// One self-contained page (no network): a layers × heads grid for each kind, tokens on both axes, values on hover,
// sub-words merged to words on demand.
std::string attention_to_html(const AttentionMap& map);

}  // namespace qkv
