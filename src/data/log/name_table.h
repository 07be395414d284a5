// Assignment of ids 0, 1, … to names, in order of first appearance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/hash.h"
#include "core/to_size.h"

namespace qkv {

// A hash table with open addressing. Takes 8 to 16 bytes per name in addition to the names.
class NameTable {
 public:
  NameTable() = default;
  explicit NameTable(std::vector<std::string> names) {  // repeated names share one id
    for (const std::string& name : names) id(name);
  }

  // Returns the id of a name; adds the name if it is new.
  int32_t id(std::string_view name) {
    if (2 * (names_.size() + 1) > slots_.size()) grow();
    int32_t& slot = slots_[place_of(name)];
    if (slot >= 0) return slot;
    if (names_.size() == kMaxNames) fail("interactions: more than {} distinct users or items", kMaxNames);
    slot = static_cast<int32_t>(names_.size());
    names_.emplace_back(name);
    return slot;
  }

  int32_t find(std::string_view name) const { return slots_.empty() ? -1 : slots_[place_of(name)]; }  // −1 if absent

  const std::vector<std::string>& names() const { return names_; }

  std::vector<std::string> take() {  // returns the names and empties the table
    slots_.clear();
    return std::exchange(names_, {});
  }

 private:
  static constexpr size_t kMaxNames = size_t{1} << 30;

  // Returns the slot of the name, or the empty slot for it.
  size_t place_of(std::string_view name) const {
    const size_t mask = slots_.size() - 1;
    size_t place = hash_bytes(name) & mask;
    while (slots_[place] >= 0 && names_[to_size(slots_[place])] != name) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    slots_.assign(std::max<size_t>(16, 2 * slots_.size()), -1);
    for (size_t i = 0; i < names_.size(); i++) slots_[place_of(names_[i])] = static_cast<int32_t>(i);
  }

  std::vector<std::string> names_;
  std::vector<int32_t> slots_;  // their number is a power of two
};

}  // namespace qkv
