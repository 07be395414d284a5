// Caches of texts that calls borrow from each other.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "decode/text_cache.h"

namespace qkv {

// At most `bytes` of caches wait for the next call; the model must outlive them. Methods may be called by many threads.
class Caches {
 public:
  Caches(const Transformer<float>& model, int64_t bytes) : model_(model), bytes_(bytes) {}

  // The one that knows most of these texts, or a new one where none waits.
  std::unique_ptr<TextCache> take(const std::vector<std::vector<int32_t>>& texts);
  void give_back(std::unique_ptr<TextCache> cache);

 private:
  const Transformer<float>& model_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<TextCache>> waiting_;  // the one that was given back last is the last
};

}  // namespace qkv
