// Randomness as a function: the same (seed, place) gives the same numbers, on any machine, in any order.
// Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace qkv {

using PhiloxWords = std::array<uint32_t, 4>;

constexpr PhiloxWords philox(PhiloxWords counter, uint64_t seed) {
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// The purpose of a stream of numbers. Streams of one seed are independent.
enum class Stream : uint32_t {
  parameters = 1,
  shuffle = 2,
  sampling = 3,
  test = 4,
  chunks = 5,
  rounding = 6,
  negatives = 7,
  training_negatives = 8,
  hidden_times = 9,
  shared_negatives = 10,
  masks = 11,
  dev_masks = 12,
  pairs = 13
};

// A sequence of numbers from one (seed, stream, index): for initial weights, shuffles and tests, not for hot loops.
class Random {
 public:
  Random(uint64_t seed, Stream stream, uint64_t index = 0)
      : seed_(seed), stream_(static_cast<uint32_t>(stream)), index_(index) {}

  uint32_t next() {
    if (position_ % 4 == 0)
      words_ = philox({static_cast<uint32_t>(position_ / 4), stream_, static_cast<uint32_t>(index_),
                       static_cast<uint32_t>(index_ >> 32)},
                      seed_);
    return words_[position_++ % 4];
  }
  double uniform() { return (next() + 0.5) * 0x1p-32; }  // in (0, 1)
  double normal() {                                      // mean 0, variance 1 (Box-Muller)
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  // Shuffles in place (Fisher and Yates).
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; i--) std::swap(values[i - 1], values[below(i)]);
  }
  uint64_t below(uint64_t n) { return static_cast<uint64_t>((static_cast<unsigned __int128>(next64()) * n) >> 64); }

 private:
  uint64_t next64() {
    const uint64_t high = next();
    return high << 32 | next();
  }

  uint64_t seed_;
  uint32_t stream_;
  uint64_t index_;
  uint64_t position_ = 0;
  PhiloxWords words_{};
};

}  // namespace qkv
