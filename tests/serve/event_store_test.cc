// The file of events that clients report, and the file that grows by synced lines below it.
#include "serve/api/event_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <future>
#include <optional>

#include "core/random.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::slurp;
using testing::spill;
using testing::TempDir;

constexpr int64_t kSeconds = 1'000'000;  // microseconds in one
const std::string kEventHeader = "user\titem\ttimestamp:s\tfeedback\tvalue\tfollowing\n";

// Appends a record, and returns the error once it is synced.
std::string put(AppendFile& file, const std::string& record) {
  std::promise<std::string> done;
  EXPECT_TRUE(file.append(record, [&](const std::string& error) { done.set_value(error); }));
  return done.get_future().get();
}

std::string put(EventStore& store, const std::vector<UserEvent>& events) {
  std::promise<std::string> done;
  EXPECT_TRUE(store.append(events, [&](const std::string& error) { done.set_value(error); }));
  return done.get_future().get();
}

// Returns a history as "item@seconds item@seconds".
std::string text_of(const EventStore& store, const std::string& user) {
  std::string text;
  for (const EventStore::Event& event : store.history(user))
    text += fmt::format("{}{}@{}", text.empty() ? "" : " ", event.item, static_cast<double>(event.time) / kSeconds);
  return text;
}

// Lowers the largest size that a file of this process may have.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    set(bytes);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  void set(rlim_t bytes) const {
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }

 private:
  rlimit before_ = {};
};

TEST(AppendFile, KeepsRecordsInTheirOrder) {
  const TempDir directory;
  const std::string path = directory / "log";
  std::string expected;
  {
    AppendFile file(path);
    for (int i = 0; i < 1000; i++) {
      const std::string record = fmt::format("record {}\n", i);
      expected += record;
      ASSERT_TRUE(file.append(record, [](const std::string& error) { EXPECT_EQ(error, ""); }));
    }
  }
  EXPECT_EQ(slurp(path), expected);
  AppendFile file(path);
  EXPECT_EQ(put(file, "last\n"), "");
  EXPECT_EQ(slurp(path), expected + "last\n");
}

TEST(AppendFile, ReportsEachLineAndRemovesOneWithoutAnEnd) {
  const TempDir directory;
  const std::string path = directory / "log";
  spill(path, "one\n\nthree\nfou");
  AppendFile file(path);
  std::string seen;
  file.recover(5, [&](const AppendFile::Line& line) {
    seen += fmt::format("{} {} {} {}|", line.number, line.offset, line.text, line.complete);
  });
  EXPECT_EQ(seen, "1 0 one true|2 4  true|3 5 three true|4 11 fou false|");
  EXPECT_EQ(slurp(path), "one\n\nthree\n");
  EXPECT_EQ(put(file, "four\n"), "");
  EXPECT_EQ(slurp(path), "one\n\nthree\nfour\n");
}

TEST(AppendFile, ReadsLinesAcrossBlocks) {
  const TempDir directory;
  const std::string path = directory / "log";
  std::string text;
  for (int i = 0; text.size() < 300'000; i++) text += std::string(static_cast<size_t>(i % 97), 'x') + "\n";
  for (const size_t size : {text.size(), size_t{65535}, size_t{65536}, size_t{65537}, size_t{131072}}) {
    spill(path, text.substr(0, size));
    AppendFile file(path);
    std::string seen;
    file.recover(96, [&](const AppendFile::Line& line) {
      EXPECT_EQ(static_cast<size_t>(line.offset), seen.size());
      if (line.complete) seen += std::string(line.text) + "\n";
    });
    EXPECT_EQ(seen, text.substr(0, text.substr(0, size).rfind('\n') + 1));
    EXPECT_EQ(slurp(path), seen);
  }
}

TEST(AppendFile, LimitsLinesButRemovesALongEndOfACrash) {
  const TempDir directory;
  const std::string path = directory / "log";
  spill(path, "one\n" + std::string(6, 'x') + "\ntwo\n");
  const auto ignore = [](const AppendFile::Line&) {};
  EXPECT_EQ(error_of([&] { AppendFile(path).recover(5, ignore); }), path + ":2: a line has more than 5 bytes");
  spill(path, "one\n" + std::string(200'000, '\0'));
  AppendFile file(path);
  file.recover(5, [](const AppendFile::Line& line) { EXPECT_LE(line.text.size(), 6u); });
  EXPECT_EQ(slurp(path), "one\n");
}

TEST(AppendFile, LeavesAFileThatTheCheckRefuses) {
  const TempDir directory;
  const std::string path = directory / "log";
  spill(path, "another\nkind of file");
  EXPECT_EQ(error_of([&] { AppendFile(path).recover(50, [](const AppendFile::Line&) { throw Error("no"); }); }), "no");
  EXPECT_EQ(slurp(path), "another\nkind of file");
}

TEST(AppendFile, RefusesWhatIsNotARegularFileOfItsOwn) {
  const TempDir directory;
  expect_contains(error_of([&] { AppendFile file(directory.path()); }), directory.path() + ": cannot be opened: ");
  expect_contains(error_of([&] { AppendFile file(directory / "no/log"); }), "/no/log: cannot be opened: ");
  const std::string fifo = directory / "fifo", path = directory / "log";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { AppendFile file(fifo); }), fifo + ": must be a regular file");
  const AppendFile file(path);
  EXPECT_EQ(error_of([&] { AppendFile second(path); }), path + ": is in use by another process");
}

TEST(AppendFile, RemovesARecordThatTheDiskHasNoRoomFor) {
  const TempDir directory;
  const std::string path = directory / "log";
  AppendFile file(path);
  EXPECT_EQ(put(file, "first\n"), "");
  const FileSizeLimit limit(10);
  EXPECT_EQ(put(file, "the second\n"), "File too large");
  EXPECT_EQ(slurp(path), "first\n");
  EXPECT_EQ(put(file, "ok\n"), "");
  limit.set(100);
  EXPECT_EQ(put(file, "the third\n"), "");
  EXPECT_EQ(slurp(path), "first\nok\nthe third\n");
}

TEST(AppendFile, LimitsWhatWaits) {
  const TempDir directory;
  AppendFile file(directory / "log");
  std::promise<void> begun, go;
  file.append("first\n", [&](const std::string&) {
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();
  const auto ignore = [](const std::string&) {};
  EXPECT_FALSE(file.append(std::string(AppendFile::kMaxWaiting + 1, 'x'), ignore));
  EXPECT_TRUE(file.append(std::string(AppendFile::kMaxWaiting - 1, '\n'), ignore));
  EXPECT_TRUE(file.append("\n", ignore));
  EXPECT_FALSE(file.append("\n", ignore));
  go.set_value();
}

TEST(EventStore, SortsTheEventsOfAUserByTheirTimes) {
  const TempDir directory;
  EventStore store(directory / "events", 1);
  EXPECT_EQ(put(store, {{"a", "x", 30 * kSeconds}, {"b", "y", 5 * kSeconds}, {"a", "y", 10 * kSeconds}}), "");
  EXPECT_EQ(put(store, {{"a", "z", 10 * kSeconds}, {"a", "w", 40 * kSeconds}}), "");
  EXPECT_EQ(text_of(store, "a"), "y@10 z@10 x@30 w@40");
  EXPECT_EQ(text_of(store, "b"), "y@5");
  EXPECT_EQ(text_of(store, "c"), "");
}

TEST(EventStore, CountsARepeatedEventOnce) {
  const TempDir directory;
  EventStore store(directory / "events", 1);
  for (int i = 0; i < 3; i++)
    EXPECT_EQ(put(store, {{"a", "x", 1 * kSeconds}, {"a", "y", 1 * kSeconds}, {"a", "x", (2 + i) * kSeconds}}), "");
  EXPECT_EQ(text_of(store, "a"), "x@1 y@1 x@2 x@3 x@4");
}

TEST(EventStore, WritesTheUnitOfItsFile) {
  const TempDir directory;
  const std::vector<UserEvent> events = {{"a", "x", 1'595'500'199'250'000, "like", 0.5}, {"a", "y", 2'000'000}};
  for (const auto& [ticks, unit, first, second] : {std::tuple{1, "s", "1595500199.25", "2"},
                                                   {1000, "ms", "1595500199250", "2000"},
                                                   {1'000'000, "us", "1595500199250000", "2000000"}}) {
    const std::string path = directory / unit;
    std::string before;
    {
      EventStore store(path, ticks);
      EXPECT_EQ(put(store, events), "");
      before = text_of(store, "a");
    }
    EXPECT_EQ(slurp(path), fmt::format("user\titem\ttimestamp:{}\tfeedback\tvalue\tfollowing\na\tx\t{}\tlike\t0.5\t1\n"
                                       "a\ty\t{}\t\t0\t0\n",
                                       unit, first, second));
    const EventStore again(path, 1);  // the file has a unit already
    EXPECT_EQ(again.ticks(), ticks);
    EXPECT_EQ(text_of(again, "a"), before);
  }
}

TEST(EventStore, MillisecondsHaveNoDecimals) {
  const TempDir directory;
  {
    EventStore store(directory / "events", 1000);
    EXPECT_EQ(put(store, {{"a", "x", 1'234'567}}), "");
    EXPECT_EQ(store.history("a").front().time, 1'234'000);
  }
  EXPECT_EQ(EventStore(directory / "events", 1).history("a").front().time, 1'234'000);
}

TEST(EventStore, RemovesARequestThatIsIncomplete) {
  const TempDir directory;
  const std::string path = directory / "events";
  std::string whole;
  {
    EventStore store(path, 1);
    EXPECT_EQ(put(store, {{"a", "x", kSeconds}}), "");
    whole = slurp(path);
    EXPECT_EQ(put(store, {{"b", "x", kSeconds}, {"b", "y", kSeconds}, {"b", "z", kSeconds}}), "");
  }
  const std::string full = slurp(path);
  for (size_t size = 0; size < full.size(); size += 1 + size % 3) {
    spill(path, full.substr(0, size));
    EventStore store(path, 1);
    EXPECT_EQ(slurp(path), size < whole.size() ? kEventHeader : whole) << size;
    EXPECT_EQ(text_of(store, "a"), size < whole.size() ? "" : "x@1") << size;
    EXPECT_EQ(text_of(store, "b"), "") << size;
    EXPECT_EQ(put(store, {{"b", "w", kSeconds}}), "");
    EXPECT_EQ(text_of(store, "b"), "w@1") << size;
  }
}

TEST(EventStore, ReadsAnyBytesWithoutChangingAFileThatItRefuses) {
  const TempDir directory;
  const std::string path = directory / "events";
  const std::string good = kEventHeader + "a\tx\t1\tlike\t1\t1\na\ty\t2\tlike\t1\t0\nb\tz\t3.5\t\t-1e300\t0\n";
  Random random(7, Stream::test);
  int refused = 0;
  for (int i = 0; i < 100; i++) {
    std::string bytes = good;
    for (uint64_t n = random.below(4); n > 0; n--)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    if (random.below(2) == 0) bytes.resize(random.below(bytes.size()));
    spill(path, bytes);
    const std::string error = testing::error_if_any([&] { EventStore store(path, 1); });
    const std::string after = slurp(path);
    if (error.empty()) {
      EXPECT_TRUE(after == kEventHeader || bytes.starts_with(after)) << bytes;
    } else {
      refused++;
      EXPECT_TRUE(error.starts_with(path + ":")) << error;
      EXPECT_EQ(after, bytes);
    }
  }
  EXPECT_GT(refused, 20);
}

TEST(EventStore, RefusesEventsThatALogCannotHold) {
  const auto error = [](const UserEvent& event) { return error_of([&] { EventStore::check(event); }); };
  EXPECT_EQ(error({"", "x"}), "the user must have 1 to 256 bytes (has 0)");
  EXPECT_EQ(error({"a", std::string(257, 'x')}), "the item must have 1 to 256 bytes (has 257)");
  EXPECT_EQ(error({"a", "x", 0, std::string(257, 'x')}), "the feedback type must have 0 to 256 bytes (has 257)");
  for (const std::string text : {"\t", "\n", "\r", "a\x7f", "\x1b["})
    expect_contains(error({text, "x"}), "the user must have no control characters");
  EXPECT_EQ(error({"\xff", "x"}), "the user must be UTF-8");
  EXPECT_EQ(error({"a", "x", -1}), "the time must be from 1970 to 9999");
  EXPECT_EQ(error({"a", "x", 253'402'300'800 * kSeconds}), "the time must be from 1970 to 9999");
  EXPECT_EQ(error({"a", "x", 0, "", std::numeric_limits<double>::infinity()}), "the value must be a finite number");
  EventStore::check({"ä b,\"'{;", "::", 253'402'300'800 * kSeconds - 1, "", -1.5});
}

TEST(EventStore, KeepsTheLatestEventsOfAUser) {
  const TempDir directory;
  EventStore store(directory / "events", 1);
  std::vector<UserEvent> events;
  for (size_t i = 0; i < EventStore::kMaxEvents + 5; i++)
    events.push_back({"a", fmt::format("i{}", i), static_cast<int64_t>(i) * kSeconds});
  EXPECT_EQ(put(store, events), "");
  const auto history = store.history("a");
  ASSERT_EQ(history.size(), EventStore::kMaxEvents);
  EXPECT_EQ(history.front().item, "i5");
}

TEST(EventStore, ForgetsTheUsersWhoWereInactiveLongest) {
  const TempDir directory;
  const std::string path = directory / "events";
  constexpr size_t kLimit = 100'000;
  size_t users = 0;
  {
    EventStore store(path, 1, kLimit);
    const std::string item(100, 'i');
    for (int i = 0; i < 1000; i++)
      EXPECT_TRUE(store.append({{"first", item, i * kSeconds}, {std::to_string(i), item}}, nullptr));
    EXPECT_EQ(put(store, {{"first", item}, {"999", item}}), "");
    users = store.users();
    EXPECT_GT(users, 2u);
    EXPECT_LT(users, 1000u);
    EXPECT_LE(store.memory(), kLimit);
    EXPECT_EQ(store.history("0").size(), 0u);
    EXPECT_EQ(store.history("999").size(), 1u);
  }
  const EventStore again(path, 1, kLimit);
  EXPECT_EQ(again.users(), users);
  EXPECT_EQ(again.history("999").size(), 1u);
}

TEST(EventStore, CountsNothingOfARequestThatTheDiskHasNoRoomFor) {
  const TempDir directory;
  const std::string path = directory / "events";
  EventStore store(path, 1);
  {
    const FileSizeLimit limit(kEventHeader.size() + 20);
    EXPECT_EQ(put(store, {{"a", "x", kSeconds}, {"a", "y", kSeconds}, {"a", "z", kSeconds}}), "File too large");
    EXPECT_EQ(slurp(path), kEventHeader);
    EXPECT_EQ(store.users(), 0u);
    EXPECT_EQ(put(store, {{"a", "x", kSeconds}}), "");
  }
  EXPECT_EQ(text_of(store, "a"), "x@1");
}

}  // namespace
}  // namespace qkv
