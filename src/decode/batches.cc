#include "decode/batches.h"

#include <algorithm>
#include <numeric>

#include "qkv/system.h"

namespace qkv {

int64_t tokens_at_once(int64_t batch_tokens) {
  return batch_tokens > 0 ? batch_tokens : std::max<int64_t>(1024, 256 * threads());
}

Batches cut_by_length(const std::vector<int64_t>& lengths, int64_t batch_tokens) {
  Batches result;
  result.order.resize(lengths.size());
  std::iota(result.order.begin(), result.order.end(), size_t{0});
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  int64_t tokens = 0;
  for (size_t i = 0; i < lengths.size(); i++) {
    const int64_t next = lengths[result.order[i]];
    if (i > result.ends.back() && tokens + next > batch_tokens) {
      result.ends.push_back(i);
      tokens = 0;
    }
    tokens += next;
  }
  if (!lengths.empty()) result.ends.push_back(lengths.size());
  return result;
}

}  // namespace qkv
