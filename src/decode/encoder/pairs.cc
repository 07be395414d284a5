#include "decode/encoder/pairs.h"

#include <algorithm>

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

}  // namespace qkv
