#include "recommend/diversify.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/to_size.h"

namespace qkv {

int64_t candidates_for(int64_t top, double diversity) { return diversity > 0 ? std::max<int64_t>(100, 5 * top) : top; }

std::vector<ScoredToken> diversify(std::span<const ScoredToken> candidates, Matrix<const float> directions,
                                   double diversity, int64_t top) {
  constexpr double kTaken = -std::numeric_limits<double>::infinity();
  std::vector<ScoredToken> chosen;
  if (candidates.empty()) return chosen;
  const auto relevance_of = [&](const ScoredToken& candidate) {
    const double worst = static_cast<double>(candidates.back().logit);
    const double range = static_cast<double>(candidates.front().logit) - worst;
    return range > 0 ? (static_cast<double>(candidate.logit) - worst) / range : 1;
  };
  std::vector<double> relevance, similarity(candidates.size(), -1);  // similarity: the largest cosine
  for (const ScoredToken& candidate : candidates) relevance.push_back((1 - diversity) * relevance_of(candidate));
  while (std::ssize(chosen) < std::min(top, std::ssize(candidates))) {
    size_t best = 0;
    double largest = kTaken;
    for (size_t i = 0; i < candidates.size(); i++) {
      const double value = relevance[i] - (chosen.empty() ? 0 : diversity * similarity[i]);
      if (value > largest) largest = value, best = i;
    }
    chosen.push_back(candidates[best]);
    relevance[best] = kTaken;
    const float* latest = directions.row(static_cast<int64_t>(best));
    for (size_t i = 0; i < candidates.size(); i++) {
      const float* row = directions.row(static_cast<int64_t>(i));
      similarity[i] = std::max(similarity[i], std::inner_product(row, row + directions.cols, latest, 0.0));
    }
  }
  return chosen;
}

}  // namespace qkv
