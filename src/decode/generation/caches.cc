#include "decode/generation/caches.h"

#include <algorithm>
#include <utility>

namespace qkv {

std::unique_ptr<TextCache> Caches::take(const std::vector<std::vector<int32_t>>& texts) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return std::make_unique<TextCache>(model_, bytes_);
  const auto known = [&](const std::unique_ptr<TextCache>& cache) {
    size_t tokens = 0;
    for (const auto& text : texts) tokens += cache->known(text);
    return tokens;
  };
  const auto best = std::ranges::max_element(waiting_, {}, known);
  std::unique_ptr<TextCache> cache = std::move(*best);
  waiting_.erase(best);
  return cache;
}

void Caches::give_back(std::unique_ptr<TextCache> cache) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(cache));
  int64_t bytes = 0;
  for (const auto& one : waiting_) bytes += one->bytes();
  while (bytes > bytes_) {
    bytes -= waiting_.front()->bytes();
    waiting_.erase(waiting_.begin());
  }
}

}  // namespace qkv
