#include "ranks/watch_message.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/fail.h"

namespace qkv {
namespace {

constexpr uint32_t kWatchMagic = 0x77766b71;  // "qkvw"

using Head = std::array<uint32_t, 3>;  // magic, kind, bytes of text

// Returns whether a terminal can print the text as one line.
bool is_line(const std::string& text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

void write_watch_message(const WatchMessage& message, std::span<std::byte, kWatchBytes> to) {
  std::string text = message.text.substr(0, kMostWatchText);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  const Head head = {kWatchMagic, static_cast<uint32_t>(message.kind), static_cast<uint32_t>(text.size())};
  std::ranges::fill(to, std::byte{0});
  std::memcpy(to.data(), head.data(), sizeof head);
  std::memcpy(to.data() + sizeof head, text.data(), text.size());
}

WatchMessage read_watch_message(std::span<const std::byte, kWatchBytes> bytes) {
  Head head;
  std::memcpy(head.data(), bytes.data(), sizeof head);
  const auto [magic, kind, size] = head;
  if (magic != kWatchMagic || kind < 1 || kind > 3 || size > kMostWatchText)
    fail("a watch message of kind {} with {} bytes of text; expected kind 1 to 3 and at most {} bytes", kind, size,
         kMostWatchText);
  const auto* const first = reinterpret_cast<const char*>(bytes.data()) + sizeof head;
  WatchMessage message{static_cast<WatchKind>(kind), {first, size}};
  if (!is_line(message.text)) fail("a watch message whose text is not one line of printable characters");
  return message;
}

}  // namespace qkv
