#include "train/pair_lengths.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kMostPairs = 50'000;
constexpr int64_t kFewestPairs = 1'000;
constexpr int64_t kOutliers = 10'000;  // one pair of this number may be longer, or deviate by more

using Pairs = std::vector<std::pair<int64_t, int64_t>>;  // tokens of the source and the target

Pairs lengths_of(const ParallelText& text, const TokenizerPair& tokenizers) {
  Pairs pairs(to_size(text.size()));
  parallel_for_throwing(text.size(), [&](int64_t i) {
    pairs[to_size(i)] = {std::ssize(tokenizers.source.encode(text.source[to_size(i)])),
                         std::ssize(tokenizers.target.encode(text.target[to_size(i)]))};
  });
  return pairs;
}

// Returns the value with this number of others before it in the order.
template <class Value, class Order>
Value nth(std::vector<Value> values, int64_t place, Order order) {
  std::ranges::nth_element(values, values.begin() + place, order);
  return values[to_size(place)];
}

}  // namespace

std::optional<SentenceLengths> measure_lengths(const ParallelCorpus& text, const TokenizerPair& tokenizers,
                                               int64_t max_length) {
  std::vector<int64_t> sources;
  Pairs pairs;
  SentenceLengths lengths;
  int64_t all_sources = 0, all_targets = 0;
  for (const int64_t chunk : text.sampled_chunks(kMostPairs))
    for (const auto& [source, target] : lengths_of(text.read(chunk), tokenizers)) {
      if (std::min(source, target) < 1 || std::max(source, target) > max_length) continue;
      pairs.emplace_back(source, target);
      sources.push_back(source);
      all_sources += source;
      all_targets += target;
    }
  if (std::ssize(pairs) < kFewestPairs) return std::nullopt;
  const int64_t outliers = std::ssize(pairs) / kOutliers;
  lengths.longest = nth(sources, outliers, std::ranges::greater());
  lengths.ratio = static_cast<double>(all_targets) / static_cast<double>(all_sources);
  std::vector<double> deviations;
  for (const auto& [source, target] : pairs)
    deviations.push_back(SentenceLengths::deviation(lengths.ratio, source, target));
  lengths.least_deviation = nth(std::move(deviations), outliers, std::ranges::less());
  return lengths;
}

std::optional<SentenceLengths> with_earlier(std::optional<SentenceLengths> lengths,
                                            const std::optional<SentenceLengths>& earlier, int64_t max_length) {
  if (!lengths) return earlier;
  lengths->longest = std::max(lengths->longest, earlier ? earlier->longest : max_length);
  return lengths;
}

}  // namespace qkv
