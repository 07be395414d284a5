#include "program/experiments/ngram_model.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr double kLeastDiscount = 0.1, kLargestDiscount = 0.9;  // few texts may have no n-gram counted once or twice

// Returns the symbols as the digits of a number to base 256.
uint64_t key_of(std::span<const int32_t> symbols) {
  uint64_t key = 0;
  for (const int32_t symbol : symbols) key = key << 8 | static_cast<uint64_t>(symbol);
  return key;
}

}  // namespace

NgramModel::NgramModel(int64_t order, int64_t vocab, const std::vector<std::vector<int32_t>>& texts) : vocab_(vocab) {
  if (order < 1 || order > 5) fail("n-gram model: order must be from 1 to 5 (is {})", order);
  if (vocab < 1 || vocab > 256) fail("n-gram model: vocab must be from 1 to 256 (is {})", vocab);
  levels_.resize(to_size(order));
  count_top(texts);
  for (size_t k = levels_.size() - 1; k > 0;
       k--)  // an n-gram without its first symbol is counted once for each such symbol
    for (const auto& [gram, count] : levels_[k].grams) levels_[k - 1].grams[gram & ((uint64_t{1} << 8 * k) - 1)]++;
  for (Level& level : levels_) finish(level);
}

void NgramModel::count_top(const std::vector<std::vector<int32_t>>& texts) {
  const size_t order = levels_.size();
  for (const std::vector<int32_t>& text : texts)
    for (size_t end = order; end <= text.size(); end++)
      levels_.back().grams[key_of(std::span(text).subspan(end - order, order))]++;
}

void NgramModel::finish(Level& level) {
  double once = 0, twice = 0;
  for (const auto& [gram, count] : level.grams) {
    Followers& followers = level.contexts[gram >> 8];
    followers.count += count;
    followers.symbols++;
    once += count == 1 ? 1 : 0;
    twice += count == 2 ? 1 : 0;
  }
  const double discount = once > 0 ? once / (once + 2 * twice) : 0;
  level.discount = std::clamp(discount, kLeastDiscount, kLargestDiscount);
}

double NgramModel::probability(std::span<const int32_t> before, int32_t symbol) const {
  const size_t order = std::min(levels_.size(), before.size() + 1);
  return probability(order, before.last(order - 1), symbol);
}

double NgramModel::probability(size_t order, std::span<const int32_t> before, int32_t symbol) const {
  if (order == 0) return 1 / static_cast<double>(vocab_);
  const Level& level = levels_[order - 1];
  const double lower = probability(order - 1, order > 1 ? before.subspan(1) : before, symbol);
  const uint64_t context = key_of(before);
  const auto followers = level.contexts.find(context);
  if (followers == level.contexts.end()) return lower;
  const auto gram = level.grams.find(context << 8 | static_cast<uint64_t>(symbol));
  const double count = gram == level.grams.end() ? 0 : static_cast<double>(gram->second);
  const auto [total, symbols] = followers->second;
  const double rest = level.discount * static_cast<double>(symbols);
  return (std::max(count - level.discount, 0.0) + rest * lower) / static_cast<double>(total);
}

}  // namespace qkv
