#include "io/weights/adjacent_tensors.h"

#include <algorithm>

namespace qkv {

const std::byte* in_one_piece(std::span<const std::span<const std::byte>> parts, Arena& copy) {
  int64_t bytes = 0;
  const std::byte* next = parts.front().data();
  bool adjacent = true;
  for (const auto& part : parts) {
    adjacent = adjacent && part.data() == next;
    next = part.data() + part.size();
    bytes += std::ssize(part);
  }
  if (adjacent) return parts.front().data();
  std::byte* const first = copy.take<std::byte>(bytes);
  std::byte* to = first;
  for (const auto& part : parts) to = std::ranges::copy(part, to).out;
  return first;
}

}  // namespace qkv
