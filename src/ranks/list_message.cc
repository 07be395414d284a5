#include "ranks/list_message.h"

#include <algorithm>
#include <cstring>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

bool is_short(const ListLimits& limits) { return limits.bound > 0 && limits.bound <= int64_t{1} << 16; }

template <class Number>
void append(std::span<const int32_t> list, std::vector<std::byte>& to) {
  const size_t size = to.size();
  to.resize(size + list.size() * sizeof(Number));
  std::byte* next = to.data() + size;
  for (const int32_t value : list) {
    const auto number = static_cast<Number>(value);
    std::memcpy(next, &number, sizeof number);
    next += sizeof number;
  }
}

template <class Number>
std::vector<int32_t> numbers_of(std::span<const std::byte> bytes) {
  std::vector<int32_t> list(bytes.size() / sizeof(Number));
  const std::byte* next = bytes.data();
  for (int32_t& value : list) {
    Number number;
    std::memcpy(&number, next, sizeof number);
    value = static_cast<int32_t>(number);
    next += sizeof number;
  }
  return list;
}

std::span<const std::byte> take(std::span<const std::byte>& from, size_t size) {
  if (size > from.size()) fail("sent a message that is too short");
  const std::span<const std::byte> first = from.first(size);
  from = from.subspan(size);
  return first;
}

}  // namespace

size_t ListLimits::most_bytes() const {
  return sizeof(uint32_t) + to_size(most) * (is_short(*this) ? sizeof(uint16_t) : sizeof(int32_t));
}

void append_list(std::span<const int32_t> list, const ListLimits& limits, std::vector<std::byte>& to) {
  const auto length = static_cast<int32_t>(list.size());
  append<int32_t>({&length, 1}, to);
  is_short(limits) ? append<uint16_t>(list, to) : append<int32_t>(list, to);
}

std::vector<int32_t> take_list(std::span<const std::byte>& from, const ListLimits& limits) {
  uint32_t length;
  std::memcpy(&length, take(from, sizeof length).data(), sizeof length);
  if (int64_t{length} > limits.most) fail("sent a list of {} numbers; at most {} are accepted", length, limits.most);
  const bool is_16_bit = is_short(limits);
  const std::span<const std::byte> bytes = take(from, length * (is_16_bit ? sizeof(uint16_t) : sizeof(int32_t)));
  std::vector<int32_t> list = is_16_bit ? numbers_of<uint16_t>(bytes) : numbers_of<int32_t>(bytes);
  const auto is_outside = [&](int32_t value) { return value < 0 || value >= limits.bound; };
  if (const auto bad = std::ranges::find_if(list, is_outside); limits.bound > 0 && bad != list.end())
    fail("sent the number {}; must be between 0 and {}", *bad, limits.bound - 1);
  return list;
}

}  // namespace qkv
