#include "decode/generation/readable.h"

#include <algorithm>
#include <numeric>

#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr std::string_view kWordStart = "▁";

constexpr std::string_view kByteWordStart = "Ġ";  // a space in byte-level BPE

bool have_word_starts(const std::vector<std::string>& pieces) { return std::ranges::any_of(pieces, begins_word); }

// Returns the text of each source word. Usually splitting at white space gives as many words as the pieces do;
// otherwise the words are joined from their pieces.
std::vector<std::string> surface_words(std::string_view text, const std::vector<std::string>& pieces,
                                       const std::vector<PieceRange>& words) {
  const std::vector<std::string_view> split = split_words(text);
  if (split.size() == words.size()) return {split.begin(), split.end()};
  std::vector<std::string> surfaces;
  for (const PieceRange& word : words) {
    std::string surface;
    for (size_t i = word.begin; i < word.end; i++) surface += without_word_start(pieces[i]);
    surfaces.push_back(std::move(surface));
  }
  return surfaces;
}

void append_word(std::string& text, std::string_view word, bool after_space) {
  while (text.ends_with(' ')) text.pop_back();
  if (!text.empty() && after_space) text += ' ';
  text += word;
}

}  // namespace

bool begins_word(std::string_view piece) { return piece.starts_with(kWordStart) || piece.starts_with(kByteWordStart); }

std::string_view without_word_start(std::string_view piece) {
  for (const std::string_view start : {kWordStart, kByteWordStart})
    if (piece.starts_with(start)) return piece.substr(start.size());
  return piece;
}

std::vector<PieceRange> words_of_pieces(const std::vector<std::string>& pieces) {
  const bool starts = have_word_starts(pieces);
  std::vector<PieceRange> words;
  for (size_t i = 0; i < pieces.size(); i++) {
    if (words.empty() || !starts || begins_word(pieces[i])) words.push_back({i, i});
    words.back().end = i + 1;
  }
  return words;
}

std::vector<WordScore> word_scores(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                                   const std::vector<std::string>& pieces, std::span<const double> log_p) {
  std::vector<WordScore> scores;
  for (const PieceRange& word : words_of_pieces(pieces)) {
    const auto first = log_p.begin() + static_cast<int64_t>(word.begin),
               last = log_p.begin() + static_cast<int64_t>(word.end);
    scores.push_back(
        {tokenizer.decode(ids.subspan(word.begin, word.end - word.begin)), std::accumulate(first, last, 0.0)});
  }
  return scores;
}

std::vector<Alignment> align(std::span<const float> attention, size_t T, size_t S, PieceRange source) {
  std::vector<Alignment> alignment;
  for (size_t i = 0; i < T && source.begin < source.end; i++) {
    const auto row = attention.subspan(i * S + source.begin, source.end - source.begin);
    const auto best = std::ranges::max_element(row) - row.begin();
    alignment.push_back({static_cast<int32_t>(best) + static_cast<int32_t>(source.begin), static_cast<int32_t>(i)});
  }
  return alignment;
}

std::string replace_unknown(const Tokenizer& tokenizer, std::span<const int32_t> ids, int32_t unknown,
                            const std::vector<Alignment>& alignment, const SourceText& source) {
  const auto first = source.pieces.begin();
  const std::vector<std::string> source_pieces(first + static_cast<int64_t>(source.range.begin),
                                               first + static_cast<int64_t>(source.range.end));
  const std::vector<PieceRange> words = words_of_pieces(source_pieces);
  const std::vector<std::string> surfaces = surface_words(source.text, source_pieces, words);
  const std::vector<std::string> pieces = tokenizer.pieces(ids);
  const bool starts = have_word_starts(pieces);
  const auto aligned_word = [&](size_t i) -> std::string_view {
    for (const Alignment& a : alignment)
      if (to_size(a.target) == i)
        for (size_t w = 0; w < words.size(); w++)
          if (to_size(a.source) - source.range.begin < words[w].end) return surfaces[w];
    return "";
  };
  std::string text;
  bool glued = false;  // the next piece continues a word that begins with an unknown token
  for (size_t i = 0; i < ids.size();) {
    if (ids[i] == unknown) {
      append_word(text, aligned_word(i++), true);
      glued = starts && i < ids.size() && !begins_word(pieces[i]);
      continue;
    }
    const size_t begin = i;
    while (i < ids.size() && ids[i] != unknown) i++;
    append_word(text, tokenizer.decode(ids.subspan(begin, i - begin)), !glued);
    glued = false;
  }
  return text;
}

}  // namespace qkv
