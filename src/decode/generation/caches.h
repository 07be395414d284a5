// A pool of text caches that successive calls reuse.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "decode/generation/text_cache.h"

namespace qkv {

// Keeps at most `bytes` bytes of caches between calls. The model must outlive the pool. Methods are thread-safe.
class Caches {
 public:
  Caches(const Transformer<float>& model, int64_t bytes) : model_(model), bytes_(bytes) {}

  // Returns the kept cache that holds the most tokens of these texts, or a new cache if none is kept.
  std::unique_ptr<TextCache> take(const std::vector<std::vector<int32_t>>& texts);
  void give_back(std::unique_ptr<TextCache> cache);  // drops the oldest caches beyond `bytes`

 private:
  const Transformer<float>& model_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<TextCache>> waiting_;  // in the order in which they were given back
};

}  // namespace qkv
