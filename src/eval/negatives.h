// Random items drawn for every user, among which the user's target is ranked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "data/log/interactions.h"
#include "data/log/split.h"

namespace qkv {

// The negatives of all users.
struct Negatives {
  int64_t each = 0;            // number per user
  std::vector<int32_t> items;  // [users, each]

  std::span<const int32_t> of(int64_t user) const {
    return std::span(items).subspan(to_size(user * each), to_size(each));
  }
};

// Draws `each` items for every user, uniformly and with replacement, from the items that are not among the user's
// training events. The result depends only on the seed, the user and those events. A user who has every item gets
// negatives from all items, as does everyone with repeats.
Negatives draw_negatives(const Interactions& data, const Split& split, int64_t each, uint64_t seed,
                         bool repeats = false);

// Writes negatives to a file, together with the SHA-256 of their log.
void save_negatives(const std::string& path, const Negatives& negatives, const std::string& sha256);

// Reads negatives from a file. Throws Error with the file name if Safetensors::open does, if the file does not hold a
// single tensor I32 [users, each], if it belongs to another log, or if an item is not in the log.
Negatives load_negatives(const std::string& path, const Interactions& data, int64_t each, const std::string& sha256);

}  // namespace qkv
