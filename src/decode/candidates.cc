#include "decode/candidates.h"

#include <algorithm>
#include <cmath>

#include "decode/mean_probability.h"

namespace qkv {

Matrix<float> next_log_probabilities(const Ensemble& models, KeyValueCache& cache, std::span<const int32_t> ids,
                                     Context& c) {
  std::vector<Matrix<float>> logits;
  for (size_t m = 0; m < models.size(); m++) logits.push_back(cache.logits(m, ids, c));
  return log_mean_probability(logits);
}

std::vector<Candidate> best_candidates(std::span<const NextToken> next, std::span<const double> sums, size_t count) {
  std::vector<Candidate> best;  // a heap, the worst on top
  for (size_t i = 0; i < next.size(); i++) {
    const double before = sums[i] + static_cast<double>(next[i].offset);
    double bar = best.size() < count ? -INFINITY : best.front().sum - before;
    for (size_t v = 0; v < next[i].values.size(); v++) {
      const double log_q = static_cast<double>(next[i].values[v]);
      if (!(log_q > bar)) continue;
      if (best.size() == count) {
        std::pop_heap(best.begin(), best.end());
        best.pop_back();
      }
      best.push_back({before + log_q, 0, static_cast<int32_t>(i), static_cast<int32_t>(v)});
      std::push_heap(best.begin(), best.end());
      if (best.size() == count) bar = best.front().sum - before;
    }
  }
  std::sort_heap(best.begin(), best.end());
  for (Candidate& c : best) c.log_p = next[static_cast<size_t>(c.parent)].log_p(c.token);
  return best;
}

}  // namespace qkv
