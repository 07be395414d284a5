// Attention weights for a terminal: one line per row token and one shade per weight, with the column tokens written
// vertically above. Lines have at most 100 columns; column tokens that do not fit follow in further bands.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "core/fail.h"
#include "core/to_size.h"
#include "eval/attention_words.h"
#include "text/visible.h"

namespace qkv {

namespace {

constexpr size_t line_width = 100, longest_row_label = 24, longest_column_label = 14;

// Returns the label of each piece. A piece that continues a word is preceded by a dot.
std::vector<std::vector<Glyph>> labels(const std::vector<std::string>& pieces) {
  std::vector<std::vector<Glyph>> result;
  for (const Word& word : words_of(pieces))
    for (size_t i = word.begin; i < word.end; i++)
      result.push_back(glyphs((i > word.begin ? "·" : "") + piece_text(pieces[i])));
  return result;
}

struct Shade {
  float from;
  const char* bytes;
};
constexpr std::array<Shade, 5> shades = {{{0.6f, "█"}, {0.3f, "▓"}, {0.1f, "▒"}, {0.02f, "░"}, {0, "·"}}};

// A `wide` cell has two columns, which makes it square and leaves room for a wide character above.
std::string cell(float weight, bool wide) {
  const auto shade = std::find_if(shades.begin(), shades.end() - 1, [&](const Shade& s) { return weight >= s.from; });
  const std::string bytes = shade->bytes;
  return !wide ? bytes : shade == shades.end() - 1 ? bytes + " " : bytes + bytes;
}

std::vector<float> mean_of(const std::vector<AttentionHead>& heads) {
  std::vector<float> mean(heads.front().weights.size());
  for (const AttentionHead& one : heads)
    for (size_t i = 0; i < mean.size(); i++) mean[i] += one.weights[i] / static_cast<float>(heads.size());
  return mean;
}

// Says where the rest of the rows is, if a row is a distribution over two kinds.
std::string rest_of_rows(const AttentionKind& kind, const std::vector<float>& weights) {
  const auto C = std::ssize(kind.columns);
  for (auto row = weights.begin(); row != weights.end(); row += C)
    if (const double sum = std::accumulate(row, row + C, 0.0); sum > 0 && sum < 0.999)
      return fmt::format("; the rest of each row is in {}", kind.name == "cross" ? "decoder" : "cross");
  return "";
}

std::string title_of(const AttentionKind& kind, int layer, const std::string& of_heads,
                     const std::vector<float>& weights) {
  const std::string name = kind.name, layers = fmt::format("{} of {}", layer + 1, kind.layers.size());
  switch (kind.method) {
    case AttentionMethod::weights:
      break;
    case AttentionMethod::rollout:
      return fmt::format("{} attention rollout, layers 1 to {}: shares of columns in rows{}\n", name, layers,
                         rest_of_rows(kind, weights));
    case AttentionMethod::flow:
      return fmt::format("{} attention flow, layers 1 to {}: shares of columns in what can flow to rows{}\n", name, layers,
                         rest_of_rows(kind, weights));
    case AttentionMethod::gradient:
      return fmt::format("{} gradient x input: shares of columns in log p of rows{}\n", name,
                         rest_of_rows(kind, weights));
    case AttentionMethod::integrated:
      return fmt::format("{} integrated gradients: shares of columns in log p of rows{}\n", name,
                         rest_of_rows(kind, weights));
  }
  return fmt::format("{} attention, layer {}, {}: rows look at columns\n", name, layers, of_heads);
}

std::string legend(const AttentionKind& kind, bool numbers) {
  std::string text = numbers ? "" : "\nweight:";
  for (auto shade = shades.rbegin(); !numbers && shade != shades.rend(); ++shade)
    text += shade->from > 0 ? fmt::format("  {} from {}", shade->bytes, shade->from)
                            : fmt::format("  {} less", shade->bytes);
  if (!kind.causal) return text + (numbers ? "" : "\n");
  return text + (numbers ? "\nblank: later tokens, hidden\n" : "  (blank: later tokens, hidden)\n");
}

}  // namespace

std::string attention_to_text(const AttentionKind& kind, int layer, int head, const AttentionTextOptions& options) {
  check(kind);
  if (layer < 0 || layer >= std::ssize(kind.layers))
    fail("attention \"{}\": layer must be between 1 and {} (is {})", kind.name, kind.layers.size(), int64_t{layer} + 1);
  const std::vector<AttentionHead>& heads = kind.layers[to_size(layer)];
  if (head < 0 || head >= std::ssize(heads))
    fail("attention \"{}\": head must be between 1 and {} in layer {} (is {})", kind.name, heads.size(), layer + 1,
         int64_t{head} + 1);
  const std::vector<float> weights = options.mean ? mean_of(heads) : heads[to_size(head)].weights;
  const size_t C = kind.columns.size();

  std::vector<std::vector<Glyph>> rows = labels(kind.rows), columns = labels(kind.columns);
  size_t margin = 0;
  for (std::vector<Glyph>& label : rows) {
    shorten(label, longest_row_label);
    margin = std::max(margin, width(label) + 1);
  }
  bool wide_text = false;
  for (std::vector<Glyph>& label : columns) {
    if (label.size() > longest_column_label) {
      label.resize(longest_column_label - 1);
      label.push_back({"…", 1});
    }
    for (const Glyph& glyph : label) wide_text = wide_text || glyph.width == 2;
  }
  const bool wide = wide_text || margin + 2 * C <= line_width;
  const size_t cell_width = options.numbers ? 5 : wide ? 2 : 1, band = (line_width - margin) / cell_width;

  const std::string of_heads = options.mean ? fmt::format("mean of {} heads", heads.size())
                                            : fmt::format("head {} of {}", head + 1, heads.size());
  std::string text = title_of(kind, layer, of_heads, weights);
  for (size_t begin = 0; begin < C; begin += band) {
    const size_t end = std::min(C, begin + band);
    text += '\n';
    size_t height = 0;
    for (size_t j = begin; j < end; j++) height = std::max(height, columns[j].size());
    for (size_t y = 0; y < height; y++) {  // labels end just above the map
      std::string line(margin, ' ');
      for (size_t j = begin; j < end; j++) {
        const size_t above = height - columns[j].size();
        const Glyph glyph = y < above ? Glyph{" ", 1} : columns[j][y - above];
        line += glyph.bytes + std::string(cell_width - glyph.width, ' ');
      }
      text += trimmed_line(line);
    }
    for (size_t i = 0; i < rows.size(); i++) {
      std::string line(margin - 1 - width(rows[i]), ' ');
      for (const Glyph& glyph : rows[i]) line += glyph.bytes;
      line += ' ';
      const size_t visible = kind.causal ? std::clamp(i + 1, begin, end) : end;
      for (size_t j = begin; j < visible; j++)
        line += options.numbers ? fmt::format("{:.2f} ", weights[i * C + j]) : cell(weights[i * C + j], wide);
      text += trimmed_line(line);
    }
  }
  return text + legend(kind, options.numbers);
}

}  // namespace qkv
