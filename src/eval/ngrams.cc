// Clipped n-gram counts: the size of the intersection of two sorted multisets.
#include "eval/ngrams.h"

#include <algorithm>

#include "core/fail.h"

namespace qkv {
namespace {

std::vector<std::string_view> sorted_ngrams(const std::vector<std::string_view>& units, size_t n) {
  std::vector<std::string_view> ngrams;
  for (size_t i = 0; i + n <= units.size(); ++i) {
    const std::string_view last = units[i + n - 1];
    ngrams.emplace_back(units[i].data(), last.data() + last.size() - units[i].data());
  }
  std::sort(ngrams.begin(), ngrams.end());
  return ngrams;
}

}  // namespace

NgramCounts count_ngrams(const std::vector<std::string_view>& hypothesis,
                         const std::vector<std::string_view>& reference, size_t n) {
  const std::vector<std::string_view> ours = sorted_ngrams(hypothesis, n), theirs = sorted_ngrams(reference, n);
  NgramCounts counts{static_cast<int64_t>(ours.size()), static_cast<int64_t>(theirs.size()), 0};
  for (size_t i = 0, j = 0; i < ours.size() && j < theirs.size();) {
    const int order = ours[i].compare(theirs[j]);
    counts.matched += order == 0;
    i += order <= 0;
    j += order >= 0;
  }
  return counts;
}

void check_line_counts(const char* metric, const std::vector<std::string>& hypotheses,
                       const std::vector<std::string>& references) {
  if (hypotheses.size() != references.size())
    fail("{}: expected one reference per hypothesis (found {} hypotheses and {} references)", metric, hypotheses.size(),
         references.size());
}

}  // namespace qkv
