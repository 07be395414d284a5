// A set of 64-bit hashes. Each takes at most 22 bytes, from a thousand of them on.
#pragma once

#include <cstdint>
#include <vector>

namespace qkv {

// A table with linear probing that is at most three quarters full. Two texts share a hash with a probability of 2^-64.
class HashSet {
 public:
  // Returns whether the hash is new.
  bool insert(uint64_t hash) {
    if (4 * (size_ + 1) > 3 * slots_.size()) grow();
    uint64_t& slot = find(stored(hash));
    if (slot != 0) return false;
    slot = stored(hash);
    size_++;
    return true;
  }

  bool contains(uint64_t hash) const { return size_ > 0 && const_cast<HashSet*>(this)->find(stored(hash)) != 0; }

 private:
  static uint64_t stored(uint64_t hash) { return hash == 0 ? 1 : hash; }  // 0 is an empty slot

  // Returns the slot of the hash: its own, or an empty one.
  uint64_t& find(uint64_t hash) {
    size_t place = hash & (slots_.size() - 1);
    while (slots_[place] != 0 && slots_[place] != hash) place = (place + 1) & (slots_.size() - 1);
    return slots_[place];
  }

  void grow() {
    std::vector<uint64_t> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    for (const uint64_t hash : old)
      if (hash != 0) find(hash) = hash;
  }

  std::vector<uint64_t> slots_;  // a power of two of them
  size_t size_ = 0;
};

}  // namespace qkv
