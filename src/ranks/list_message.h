// Lists of numbers as bytes of a message: for each list its length, in 4 bytes, then its numbers. A number takes 2
// bytes if all that are accepted fit, otherwise 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

struct ListLimits {
  int64_t most = 0;   // largest length of a list
  int64_t bound = 0;  // numbers are between 0 and bound − 1; 0: any number

  size_t most_bytes() const;  // of a list
};

void append_list(std::span<const int32_t> list, const ListLimits& limits, std::vector<std::byte>& to);

// Removes a list from the front of a message. Throws Error, without the name of the sender, if it is invalid.
std::vector<int32_t> take_list(std::span<const std::byte>& from, const ListLimits& limits);

}  // namespace qkv
