#include "analysis/heads/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"
#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// p: in [0, 1]. values: in increasing order, at least one.
double percentile(const std::vector<double>& values, double p) {
  const double at = p * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(at), above = std::min(below + 1, values.size() - 1);
  const double part = at - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

}  // namespace

Bootstrap::Bootstrap(int64_t texts, int64_t resamples, int64_t seed)
    : texts_(to_size(texts)), resamples_(resamples), seed_(static_cast<uint64_t>(seed)) {}

std::vector<uint32_t> Bootstrap::sample(int64_t number) const {
  Random random(seed_, Stream::sampling, static_cast<uint64_t>(number));
  std::vector<uint32_t> texts(texts_);
  for (uint32_t& t : texts) t = static_cast<uint32_t>(random.below(texts_));
  return texts;
}

Change Bootstrap::of(std::span<const double> values, std::span<const double> weights) const {
  return of([&](std::span<const uint32_t> sample) {
    double sum = 0, weight = 0;
    for (const uint32_t t : sample) sum += values[t], weight += weights[t];
    return sum / weight;  // NaN without weights, whose values are 0
  });
}

Change Bootstrap::of(MeasureOf measure) const {
  Change change;
  std::vector<uint32_t> all(texts_);
  std::iota(all.begin(), all.end(), 0u);
  change.value = measure(all);
  std::vector<double> measures(to_size(resamples_));
  parallel_for(resamples_, [&](int64_t r) { measures[to_size(r)] = measure(sample(r)); });
  std::erase_if(measures, [](double m) { return std::isnan(m); });
  std::ranges::sort(measures);
  change.low = measures.empty() ? change.value : percentile(measures, 0.025);
  change.high = measures.empty() ? change.value : percentile(measures, 0.975);
  return change;
}

}  // namespace qkv
