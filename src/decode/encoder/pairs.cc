#include "decode/encoder/pairs.h"

#include <algorithm>

#include "core/to_size.h"

namespace qkv {

std::pair<size_t, size_t> longest_first(size_t a, size_t b, size_t room) {
  if (a + b <= room) return {a, b};
  const bool swapped = a > b;
  if (swapped) std::swap(a, b);
  // Only the longer text is truncated if it remains the longer one.
  if (a <= room / 2)
    b = room - a;
  else
    a = room / 2, b = room - a;
  if (swapped) std::swap(a, b);
  return {a, b};
}

ClassifierTokens join(const TextEdges& edges, int64_t separators, const std::vector<int32_t>& a,
                      const std::vector<int32_t>* b) {
  ClassifierTokens joined;
  const auto append = [&](const std::vector<int32_t>& ids, int32_t type) {
    joined.ids.insert(joined.ids.end(), ids.begin(), ids.end());
    joined.types.resize(joined.ids.size(), type);
  };
  append(edges.before, 0);
  append(a, 0);
  append(edges.after, 0);
  if (!b) return joined;
  for (int64_t i = 1; i < separators; i++) append(edges.after, 0);
  append(*b, 1);
  append(edges.after, 1);
  return joined;
}

ClassifierTokens join_cut(const TextEdges& edges, int64_t separators, std::span<const int32_t> text,
                          const std::vector<int32_t>* pair, int64_t max_length) {
  const int64_t ends = pair ? separators + 1 : 1;
  const size_t room = to_size(max_length - std::ssize(edges.before) - ends * std::ssize(edges.after));
  const size_t of_pair = pair ? pair->size() : 0;
  const auto [kept_a, kept_b] = longest_first(text.size(), of_pair, room);
  const std::vector<int32_t> a(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(kept_a));
  std::vector<int32_t> b;
  if (pair) b.assign(pair->begin(), pair->begin() + static_cast<std::ptrdiff_t>(kept_b));
  ClassifierTokens tokens = join(edges, separators, a, pair ? &b : nullptr);
  tokens.is_cut = kept_a + kept_b < text.size() + of_pair;
  return tokens;
}

int64_t least_length(const TextEdges& edges) { return std::ssize(edges.before) + 3 * std::ssize(edges.after) + 1; }

}  // namespace qkv
