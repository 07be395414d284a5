// BLEU = BP · exp(1/4 Σ_n ln p_n), where p_n is the precision of n-grams of order n over the whole corpus (matched /
// found), BP = min(1, exp(1 − r/c)), and c and r are the numbers of tokens in the hypotheses and references. Papineni
// et al., "BLEU" (2002).
#include <cmath>

#include "eval/bleu_counts.h"
#include "eval/ngrams.h"
#include "eval/tokenizer_13a.h"
#include "qkv/evaluate.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// Returns the precisions in percent. The k-th order without a match counts as 1/2^k matches. An order without n-grams
// has precision 0.
std::array<double, 4> smoothed_precisions(const std::array<NgramCounts, 4>& counts) {
  std::array<double, 4> precisions{};
  if (counts[0].matched == 0) return precisions;
  double smoothing = 1;
  for (size_t n = 0; n < 4 && counts[n].hypothesis > 0; ++n) {
    const double total = static_cast<double>(counts[n].hypothesis);
    if (counts[n].matched == 0) smoothing *= 2;
    precisions[n] =
        counts[n].matched == 0 ? 100. / (smoothing * total) : 100. * static_cast<double>(counts[n].matched) / total;
  }
  return precisions;
}

double brevity_penalty(int64_t hypothesis_length, int64_t reference_length) {
  if (hypothesis_length >= reference_length) return 1;
  if (hypothesis_length == 0) return 0;
  return std::exp(1 - static_cast<double>(reference_length) / static_cast<double>(hypothesis_length));
}

}  // namespace

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (size_t n = 0; n < orders.size(); n++) {
    orders[n].hypothesis += other.orders[n].hypothesis;
    orders[n].reference += other.orders[n].reference;
    orders[n].matched += other.orders[n].matched;
  }
  return *this;
}

BleuCounts bleu_counts(const std::string& hypothesis, const std::string& reference, bool lowercase) {
  const auto tokens = [lowercase](const std::string& line) {
    return tokenize_13a(lowercase ? qkv::lowercase(line) : line);
  };
  const std::string hypothesis_tokens = tokens(hypothesis), reference_tokens = tokens(reference);
  const auto hypothesis_words = split_words(hypothesis_tokens), reference_words = split_words(reference_tokens);
  BleuCounts counts;
  for (size_t n = 0; n < 4; ++n) counts.orders[n] = count_ngrams(hypothesis_words, reference_words, n + 1);
  return counts;
}

BleuScore bleu_of(const BleuCounts& counts) {
  BleuScore result;
  result.hypothesis_length = counts.orders[0].hypothesis;
  result.reference_length = counts.orders[0].reference;
  result.precisions = smoothed_precisions(counts.orders);
  result.brevity_penalty = brevity_penalty(result.hypothesis_length, result.reference_length);
  if (result.precisions[3] > 0) {
    double sum = 0;
    for (const double p : result.precisions) sum += std::log(p);
    result.score = result.brevity_penalty * std::exp(sum / 4);
  }
  return result;
}

BleuScore bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references, bool lowercase) {
  check_line_counts("bleu", hypotheses, references);
  BleuCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) counts += bleu_counts(hypotheses[i], references[i], lowercase);
  return bleu_of(counts);
}

}  // namespace qkv
