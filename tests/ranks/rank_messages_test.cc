#include "ranks/rank_messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_if_any;
using testing::error_of;

TEST(RankMessages, AreReadAsTheyWereWritten) {
  const Hello hello = read_hello(write_hello({"qkv 1.2", "avx2", "c3", 8, 4, 16}));
  EXPECT_EQ(hello.version, "qkv 1.2");
  EXPECT_EQ(hello.isa, "avx2");
  EXPECT_EQ(hello.host, "c3");
  EXPECT_EQ(hello.threads, 8);
  EXPECT_EQ(hello.allowed, 4);
  EXPECT_EQ(hello.processors, 16);
  const FileHeader file = read_file_header(write_file_header({"training.json", 70}));
  EXPECT_EQ(file.name, "training.json");
  EXPECT_EQ(file.size, 70);
  EXPECT_EQ(read_value(write_value("00ff 12")), "00ff 12");
  EXPECT_EQ(read_command(write_command(Command::save, 12), 12), Command::save);
  EXPECT_EQ(read_part_header(write_part_header({3, 40}), 3, 16).size, 40);
}

TEST(RankMessages, OfAnotherKindStepOrProgramAreRefused) {
  EXPECT_EQ(error_of([] { read_hello(write_value("x")); }), "sent a message of kind 3; expected 1");
  EXPECT_EQ(error_of([] { read_command(write_command(Command::step, 7), 8); }), "is at step 7; expected 8");
  EXPECT_EQ(error_of([] { read_command(write_command(static_cast<Command>(8), 8), 8); }),
            "sent command 8; expected 1 to 7");
  EXPECT_EQ(error_of([] { read_value(MessageBytes{}); }), "sent a message that does not come from qkv");
  EXPECT_EQ(error_of([] { read_value(std::span<const std::byte>()); }), "sent a message that is too short");
}

TEST(RankMessages, ResultsOfOtherItemsOrOfTooManyBytesAreRefused) {
  EXPECT_EQ(error_of([] {
              read_part_header(write_part_header({4, 40}), 3, 16);
            }),
            "sent results for 4 items; expected 3");
  for (const int64_t size : {-1, 49})
    EXPECT_EQ(error_of([&] {
                read_part_header(write_part_header({3, size}), 3, 16);
              }),
              fmt::format("sent {} bytes of results for 3 items; must be between 0 and 48", size));
}

TEST(RankMessages, NamesOfFilesCannotLeadOutOfTheRun) {
  for (const char* name : {"../x", "a/b", "/etc/passwd", ".hidden", "a b", "..", "a\n"})
    EXPECT_NE(error_if_any([&] { read_file_header(write_file_header({name, 1})); }), "") << name;
  for (const int64_t size : {int64_t{-1}, int64_t{1} << 41})
    EXPECT_NE(error_if_any([&] { read_file_header(write_file_header({"a.json", size})); }), "") << size;
}

TEST(RankMessages, EveryChangedBitGivesAValidMessageOrAnErrorOfOneLine) {
  const MessageBytes valid = write_hello({"qkv 1.2", "avx2", "c3", 8, 4, 16});
  for (size_t byte = 0; byte < 64; byte++)
    for (int bit = 0; bit < 8; bit++) {
      MessageBytes changed = valid;
      changed[byte] ^= std::byte(1 << bit);
      EXPECT_EQ(error_if_any([&] { read_hello(changed); }).find('\n'), std::string::npos);
    }
}

TEST(WatchMessage, IsReadAsItWasWritten) {
  std::array<std::byte, kWatchBytes> bytes;
  write_watch_message({WatchKind::failure, "text\nof two lines"}, bytes);
  const WatchMessage message = read_watch_message(bytes);
  EXPECT_EQ(message.kind, WatchKind::failure);
  EXPECT_EQ(message.text, "text of two lines");
  write_watch_message({WatchKind::failure, std::string(5000, 'x')}, bytes);
  EXPECT_EQ(read_watch_message(bytes).text, std::string(kMostWatchText, 'x'));
}

TEST(WatchMessage, ThatIsInvalidIsRefused) {
  std::array<std::byte, kWatchBytes> bytes;
  const auto refuses = [&](size_t at, uint32_t value) {
    write_watch_message({WatchKind::beat, "x"}, bytes);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return !error_if_any([&] { read_watch_message(bytes); }).empty();
  };
  EXPECT_TRUE(refuses(0, 1));  // magic
  EXPECT_TRUE(refuses(4, 0));  // kind
  EXPECT_TRUE(refuses(4, 4));
  EXPECT_TRUE(refuses(8, kMostWatchText + 1));  // size of the text
  EXPECT_TRUE(refuses(12, '\n'));
}

using Lists = std::vector<std::vector<int32_t>>;
using Bytes = std::vector<std::byte>;

Bytes message_of(const Lists& lists, const ListLimits& limits) {
  Bytes bytes;
  for (const auto& list : lists) append_list(list, limits, bytes);
  return bytes;
}

TEST(ListMessage, IsReadAsItWasWritten) {
  const Lists lists = {{0, 65535, 7}, {}, {1}};
  for (const int64_t bound : {65536, 65537, 0}) {
    const ListLimits limits{3, bound};
    const Bytes bytes = message_of(lists, limits);
    EXPECT_EQ(bytes.size(), 3 * 4 + 4 * (bound == 65536 ? 2 : 4));
    std::span<const std::byte> rest(bytes);
    for (const auto& list : lists) EXPECT_EQ(take_list(rest, limits), list);
    EXPECT_TRUE(rest.empty());
  }
}

TEST(ListMessage, WithoutABoundHoldsAnyNumber) {
  const std::vector<int32_t> list = {-1, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  const Bytes bytes = message_of({list}, {3});
  std::span<const std::byte> rest(bytes);
  EXPECT_EQ(take_list(rest, {3}), list);
}

TEST(ListMessage, OfALengthOrNumberOutsideTheLimitsIsRefused) {
  const auto error_for = [](const std::vector<int32_t>& list, const ListLimits& written, const ListLimits& read) {
    const Bytes bytes = message_of({list}, written);
    return error_of([&] {
      std::span<const std::byte> rest(bytes);
      take_list(rest, read);
    });
  };
  EXPECT_EQ(error_for({1, 2, 3}, {3, 9}, {2, 9}), "sent a list of 3 numbers; at most 2 are accepted");
  EXPECT_EQ(error_for({1, 9}, {2, 10}, {2, 9}), "sent the number 9; must be between 0 and 8");
  EXPECT_EQ(error_for({-1}, {1, 0}, {1, 70000}), "sent the number -1; must be between 0 and 69999");
}

TEST(ListMessage, ThatEndsEarlyIsRefused) {
  const ListLimits limits{3, 9};
  const Bytes bytes = message_of({{1, 2, 3}}, limits);
  for (size_t size = 0; size < bytes.size(); size++)
    EXPECT_EQ(error_of([&] {
                std::span<const std::byte> rest = std::span(bytes).first(size);
                take_list(rest, limits);
              }),
              "sent a message that is too short");
}

}  // namespace
}  // namespace qkv
