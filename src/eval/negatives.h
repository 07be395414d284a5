// Items that are drawn at random for every user, to rank the one they chose among.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/interactions.h"
#include "data/split.h"

namespace qkv {

struct Negatives {
  int64_t each = 0;            // of every user
  std::vector<int32_t> items;  // [users, each]

  std::span<const int32_t> of(int64_t user) const {
    return std::span(items).subspan(static_cast<size_t>(user * each), static_cast<size_t>(each));
  }
};

// `each` items for every user, drawn uniformly and with replacement among those that are not in the user's part to
// train on; they depend on the seed, the user and that part alone. A user who knows every item gets drawn from all of
// them.
Negatives draw_negatives(const Interactions& data, const Split& split, int64_t each, uint64_t seed);

// A file of them, for the log of this SHA-256.
void save_negatives(const std::string& path, const Negatives& negatives, const std::string& sha256);

// Throws Error, naming the file: what Safetensors::open throws, other tensors than one of I32 [users, each], the
// negatives of another log, an item that the log does not have.
Negatives load_negatives(const std::string& path, const Interactions& data, int64_t each, const std::string& sha256);

}  // namespace qkv
