// Messages between ranks, as bytes. One that arrives is checked before it is used; the readers throw Error, without the
// name of the sender, for a message that is invalid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qkv {

// Messages that ranks exchange before and between steps have a fixed size.
using MessageBytes = std::array<std::byte, 512>;

// Describes a rank at the start.
struct Hello {
  std::string version, isa, host;  // of the program; instruction set; name of the machine
  int32_t threads = 0;
  int32_t allowed = 0, processors = 0;  // that the process may use; of the machine
};
MessageBytes write_hello(const Hello& hello);
Hello read_hello(std::span<const std::byte> bytes);

// A file of a run directory, which follows in parts; an empty name ends the list.
struct FileHeader {
  std::string name;  // without a path
  int64_t size = 0;  // bytes
};
MessageBytes write_file_header(const FileHeader& header);
FileHeader read_file_header(std::span<const std::byte> bytes);

// A value that must be the same on all ranks, such as a fingerprint of the training data.
MessageBytes write_value(const std::string& value);
std::string read_value(std::span<const std::byte> bytes);

// The results of a rank for some items of a partition (rank_partition.h), which follow.
struct PartHeader {
  int64_t items = 0, size = 0;  // number of items; bytes of all
};
MessageBytes write_part_header(const PartHeader& header);
// `items` is the number that this rank expects, and `most` the largest number of bytes of one item.
PartHeader read_part_header(std::span<const std::byte> bytes, int64_t items, int64_t most);

// A request of rank 0 to all others.
enum class Command : int32_t {
  step = 1,
  collect_average = 2,
  save = 3,
  end = 4,
  stop = 5,
  score_baselines = 6,
  evaluate = 7,
};
MessageBytes write_command(Command command, int64_t step);
// `step` is the number of completed steps of this rank, which must be that of rank 0.
Command read_command(std::span<const std::byte> bytes, int64_t step);

// Lists of numbers: for each list its length, in 4 bytes, then its numbers. A number takes 2 bytes if all that are
// accepted fit, otherwise 4.
struct ListLimits {
  int64_t most = 0;   // largest length of a list
  int64_t bound = 0;  // numbers are between 0 and bound − 1; 0: any number

  size_t most_bytes() const;  // of a list
};

void append_list(std::span<const int32_t> list, const ListLimits& limits, std::vector<std::byte>& to);

// Removes a list from the front of a message. Throws Error, without the name of the sender, if it is invalid.
std::vector<int32_t> take_list(std::span<const std::byte>& from, const ListLimits& limits);

// Messages by which ranks watch each other: a beat, a failure or the end. They have a fixed size, too.
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
