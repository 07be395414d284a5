// Messages by which ranks watch each other: a beat, a failure or the end. They have a fixed size. One that arrives is
// checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace qkv {

enum class WatchKind : uint32_t { beat = 1, failure = 2, end = 3 };

struct WatchMessage {
  WatchKind kind = WatchKind::beat;
  std::string text = {};  // of a failure: one line, at most kMostWatchText bytes
};

constexpr size_t kWatchBytes = 1024, kMostWatchText = kWatchBytes - 12;

// Writes the message. A longer text is cut, and line ends become spaces.
void write_watch_message(const WatchMessage& message, std::span<std::byte, kWatchBytes> to);

// Reads a message that arrived. Throws Error unless it is one that write_watch_message writes.
WatchMessage read_watch_message(std::span<const std::byte, kWatchBytes> bytes);

}  // namespace qkv
