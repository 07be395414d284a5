// Merges sub-word pieces into words: merged(I, J) = 1/|I| Σ_{i ∈ I} Σ_{j ∈ J} w(i, j) for the pieces I of a row and J
// of a column.
#include "eval/attention_words.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/fail.h"

namespace qkv {

namespace {

constexpr std::string_view word_start = "▁";

bool is_byte(std::string_view piece) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>') &&
         digits.find(piece[3]) != digits.npos && digits.find(piece[4]) != digits.npos;
}

char byte_of(const std::string& piece) { return static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16)); }

bool stands_alone(std::string_view piece) {
  return piece.size() > 2 && piece.starts_with('<') && piece.ends_with('>') && piece != "<unk>" && !is_byte(piece);
}

enum class MergedRows { average, sum };

std::vector<float> merge(const std::vector<float>& weights, size_t columns, const std::vector<Word>& row_words,
                         const std::vector<Word>& column_words, MergedRows merged_rows) {
  std::vector<float> merged;
  if (weights.empty()) return merged;
  merged.reserve(row_words.size() * column_words.size());
  for (const Word& row : row_words)
    for (const Word& column : column_words) {
      double sum = 0;
      for (size_t i = row.begin; i < row.end; i++)
        for (size_t j = column.begin; j < column.end; j++) sum += weights[i * columns + j];
      const auto rows = static_cast<double>(merged_rows == MergedRows::average ? row.end - row.begin : 1);
      merged.push_back(static_cast<float>(sum / rows));
    }
  return merged;
}

// Returns the pieces of each word as one string. It keeps its "▁", so that merging a merged map changes nothing.
std::vector<std::string> merged_pieces(const std::vector<std::string>& pieces, const std::vector<Word>& words) {
  std::vector<std::string> merged;
  for (const Word& word : words)
    merged.push_back((pieces[word.begin].starts_with(word_start) ? std::string(word_start) : "") + word.text);
  return merged;
}

std::vector<TokenAttribution> merge_tokens(const std::vector<TokenAttribution>& tokens) {
  std::vector<std::string> pieces;
  for (const TokenAttribution& token : tokens) pieces.push_back(token.piece);
  std::vector<TokenAttribution> merged;
  const std::vector<Word> words = words_of(pieces);
  std::vector<std::string> names = merged_pieces(pieces, words);
  for (size_t w = 0; w < words.size(); w++) {
    TokenAttribution& to = merged.emplace_back();
    to.piece = std::move(names[w]);
    for (size_t i = words[w].begin; i < words[w].end; i++) {
      to.log_probability += tokens[i].log_probability;
      to.baseline += tokens[i].baseline;
      to.sum += tokens[i].sum;
    }
  }
  return merged;
}

}  // namespace

void check(const AttentionKind& kind) {
  const size_t R = kind.rows.size(), C = kind.columns.size();
  if (R == 0 || C == 0) fail("attention map \"{}\": expected row and column tokens (found {} and {})", kind.name, R, C);
  if (kind.causal && R != C) fail("attention map \"{}\": a causal map must be square (is {} x {})", kind.name, R, C);
  if (kind.layers.empty()) fail("attention map \"{}\": has no layers", kind.name);
  for (size_t l = 0; l < kind.layers.size(); l++) {
    if (kind.layers[l].empty()) fail("attention map \"{}\": layer {} has no heads", kind.name, l + 1);
    for (size_t h = 0; h < kind.layers[l].size(); h++) {
      const auto& [weights, values] = kind.layers[l][h];
      if (weights.size() != R * C)
        fail("attention map \"{}\": layer {}, head {} must have {} x {} weights (has {})", kind.name, l + 1, h + 1, R,
             C, weights.size());
      if (!values.empty() && values.size() != R * C)
        fail("attention map \"{}\": layer {}, head {} must have {} x {} values or none (has {})", kind.name, l + 1,
             h + 1, R, C, values.size());
    }
  }
}

void check(const AttentionMap& map) {
  if (map.kinds.empty()) fail("attention map: has no kind of attention");
  for (const AttentionKind& kind : map.kinds) check(kind);
}

std::string piece_text(const std::string& piece) {
  return piece.starts_with(word_start) && piece != word_start ? piece.substr(word_start.size()) : piece;
}

std::vector<Word> words_of(const std::vector<std::string>& pieces) {
  const bool marked =
      std::any_of(pieces.begin(), pieces.end(), [](const std::string& piece) { return piece.starts_with(word_start); });
  std::vector<Word> words;
  for (size_t i = 0; i < pieces.size(); i++) {
    const bool begins = !marked || i == 0 || pieces[i].starts_with(word_start) || stands_alone(pieces[i]) ||
                        stands_alone(pieces[i - 1]);
    const std::string text = is_byte(pieces[i]) ? std::string(1, byte_of(pieces[i])) : piece_text(pieces[i]);
    if (begins) {
      words.push_back({i, i + 1, text});
    } else {
      Word& word = words.back();
      word.text = word.text == word_start ? text : word.text + text;
      word.end = i + 1;
    }
  }
  return words;
}

AttentionMap merge_words(const AttentionMap& map) {
  check(map);
  AttentionMap merged{map.source, map.target, {}};
  if (!map.tokens.empty()) merged.tokens = merge_tokens(map.tokens);
  for (const AttentionKind& kind : map.kinds) {
    const std::vector<Word> rows = words_of(kind.rows), columns = words_of(kind.columns);
    AttentionKind& to = merged.kinds.emplace_back();
    to.name = kind.name;
    to.causal = kind.causal;
    to.method = kind.method;
    to.rows = merged_pieces(kind.rows, rows);
    to.columns = merged_pieces(kind.columns, columns);
    for (const std::vector<AttentionHead>& layer : kind.layers) {
      std::vector<AttentionHead>& heads = to.layers.emplace_back();
      for (const AttentionHead& head : layer)
        heads.push_back({merge(head.weights, kind.columns.size(), rows, columns, MergedRows::average),
                         merge(head.values, kind.columns.size(), rows, columns, MergedRows::sum)});
    }
  }
  return merged;
}

}  // namespace qkv
