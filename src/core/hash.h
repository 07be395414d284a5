// A 64-bit hash to distinguish texts. It is not cryptographic: collisions can be constructed.
// Words are folded in by a multiplication of 64 by 64 bits, as in wyhash (Wang Yi).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace qkv {

inline uint64_t hash_mix(uint64_t hash, uint64_t word) {
  const unsigned __int128 product = static_cast<unsigned __int128>(hash ^ word) * 0x9E3779B97F4A7C15;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = hash_mix(0x2545F4914F6CDD1D, bytes.size()), word;
  for (; bytes.size() >= sizeof word; bytes.remove_prefix(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = hash_mix(hash, word);
  }
  word = 0;
  if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());  // no bytes may have no address
  return hash_mix(hash, word);
}

}  // namespace qkv
