// chrF2 = 5 P R / (4 P + R), where P and R are the means over n = 1 … 6 of the precision and the recall of character
// n-grams, counted without white space over the whole corpus. Orders that are missing on either side are excluded from
// the means. Popović, "chrF" (2015).
#include "eval/ngrams.h"
#include "qkv/evaluate.h"
#include "text/unicode.h"

namespace qkv {
namespace {

std::string without_spaces(const std::string& line) {
  std::string text;
  for (const std::string_view word : split_words(line)) text += word;
  return text;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t begin = 0, end; begin < text.size(); begin = end) {
    end = begin + 1;
    while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;  // UTF-8 continuation byte
    result.push_back(text.substr(begin, end - begin));
  }
  return result;
}

double f_score(const std::array<NgramCounts, 6>& counts) {
  double precision = 0, recall = 0;
  int orders = 0;
  for (const NgramCounts& order : counts) {
    if (order.hypothesis == 0 || order.reference == 0) continue;
    precision += static_cast<double>(order.matched) / static_cast<double>(order.hypothesis);
    recall += static_cast<double>(order.matched) / static_cast<double>(order.reference);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * (5 * precision * recall / (4 * precision + recall));
}

}  // namespace

ChrfScore chrf(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references, bool lowercase) {
  check_line_counts("chrf", hypotheses, references);
  const auto text = [lowercase](const std::string& line) {
    return without_spaces(lowercase ? qkv::lowercase(line) : line);
  };
  std::array<NgramCounts, 6> counts{};
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const std::string hypothesis = text(hypotheses[i]), reference = text(references[i]);
    const auto hypothesis_characters = characters(hypothesis), reference_characters = characters(reference);
    for (size_t n = 0; n < 6; ++n) {
      const NgramCounts line = count_ngrams(hypothesis_characters, reference_characters, n + 1);
      // sacreBLEU counts a hypothesis only in the orders that its reference has.
      if (line.reference > 0) counts[n].hypothesis += line.hypothesis;
      counts[n].reference += line.reference;
      counts[n].matched += line.matched;
    }
  }
  return {f_score(counts)};
}

}  // namespace qkv
