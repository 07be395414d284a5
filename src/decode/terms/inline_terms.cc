#include "decode/terms/inline_terms.h"

#include <algorithm>
#include <utility>

#include "core/to_size.h"

namespace qkv {

std::string inline_term(std::string_view translation, std::string_view before, std::string_view after) {
  return std::string(before) + " " + std::string(translation) + std::string(after);
}

std::string with_inline_terms(std::string_view text, const Glossary& glossary, const TermMarks& marks,
                              std::span<const std::string> reserved) {
  std::string all;
  size_t done = 0;
  for (const GlossaryMatch& match : glossary.find(text)) {
    const std::string_view term = text.substr(match.begin, match.end - match.begin);
    const std::string translation = target_spellings(term, glossary.entries()[match.entry]).front();
    all += text.substr(done, match.end - done);
    done = match.end;
    const auto is_in = [&](const std::string& character) { return translation.find(character) != translation.npos; };
    if (std::ranges::none_of(reserved, is_in)) all += inline_term(translation, marks.before, marks.after);
  }
  return all += text.substr(done);
}

OwnTokens::OwnTokens(std::span<const int32_t> source, const TermMarks& marks) {
  size_t end = 0;  // of the last translation
  for (size_t i = 0; i < source.size(); i++) {
    if (i >= end && i > 0 && source[i] == marks.before_token) {
      const auto after = std::find(source.begin() + static_cast<std::ptrdiff_t>(i), source.end(), marks.after_token);
      if (after != source.end()) end = to_size(after - source.begin()) + 1;
    }
    if (i >= end) own_.push_back(i);
    place_.push_back(std::max<size_t>(own_.size(), 1) - 1);
  }
}

std::vector<int32_t> OwnTokens::of(std::span<const int32_t> source) const {
  std::vector<int32_t> tokens;
  for (const size_t i : own_) tokens.push_back(source[i]);
  return tokens;
}

void OwnTokens::apply(std::vector<Alignment>& alignment, std::vector<std::vector<float>>& attention) const {
  for (Alignment& pair : alignment) pair.source = static_cast<int32_t>(place_[to_size(pair.source)]);
  for (std::vector<float>& row : attention) {
    std::vector<float> own(own_.size());
    for (size_t i = 0; i < row.size(); i++) own[place_[i]] += row[i];
    row = std::move(own);
  }
}

}  // namespace qkv
