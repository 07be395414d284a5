// Translations made by hand, from pieces and the pairs that are aligned.
#pragma once

#include <string>
#include <vector>

#include "qkv/translator.h"

namespace qkv::testing {

// The text of SentencePiece's pieces.
inline std::string text_of(const std::vector<std::string>& pieces) {
  const std::string mark = "▁";
  std::string text;
  for (const std::string& piece : pieces)
    text += piece.starts_with(mark) ? (text.empty() ? "" : " ") + piece.substr(mark.size()) : piece;
  return text;
}

// sources: for each target piece the place of the source piece that it is aligned with; −1: none.
inline Translation translation(const std::vector<std::string>& source, const std::vector<std::string>& target,
                               const std::vector<int32_t>& sources) {
  Hypothesis hypothesis;
  hypothesis.text = text_of(target);
  hypothesis.tokens = target;
  for (size_t t = 0; t < sources.size(); t++)
    if (sources[t] >= 0) hypothesis.alignment.push_back({sources[t], static_cast<int32_t>(t)});
  return {text_of(source), source, {hypothesis}};
}

// The translation of a text by itself.
inline Translation unchanged(const std::string& text) {
  Translation same;
  same.source = text;
  same.hypotheses.resize(1);
  same.hypotheses[0].text = text;
  return same;
}

}  // namespace qkv::testing
