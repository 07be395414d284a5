// Work on long texts: the order in which it starts, and what is left at the end.
#include "serve/engine/text_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>

namespace qkv {
namespace {

// Blocks the only thread, or one that takes long work, so that what follows waits.
class Gate {
 public:
  void hold(TextThreads& threads) {
    threads.push("", TextThreads::kShort + 1, [this] {
      entered_.set_value();
      opened_.get_future().wait();
    });
    entered_.get_future().wait();
  }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> entered_, opened_;
};

TEST(TextThreads, AClientWithMuchWorkTakesTurnsWithOthers) {
  Gate gate;
  std::string order;
  std::promise<void> done;
  TextThreads threads(1);  // ends before what its work uses
  gate.hold(threads);
  for (int i = 0; i < 4; i++) threads.push("many", 10'000, [&] { order += 'm'; });
  threads.push("one", 10'000, [&] { order += 'o'; });
  threads.push("many", 10'000, [&] { done.set_value(); });
  gate.open();
  done.get_future().wait();
  EXPECT_EQ(order, "mommm");
}

TEST(TextThreads, ShortWorkWaitsForNoneThatIsLong) {
  Gate first, second;
  std::promise<void> done;
  std::atomic<bool> is_long_done = false;
  TextThreads threads(2, 1);
  first.hold(threads);
  second.hold(threads);
  threads.push("many", TextThreads::kShort + 1, [&] { is_long_done = true; });
  threads.push("many", TextThreads::kShort, [] {});
  threads.push("one", TextThreads::kShort, [&] { done.set_value(); });
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_FALSE(is_long_done);
  first.open();
  second.open();
}

TEST(TextThreads, NothingIsHeldOfWorkThatWaitedAtTheEnd) {
  const auto held = std::make_shared<int>();
  {
    Gate gate;
    TextThreads threads(1);
    gate.hold(threads);
    for (int i = 0; i < 100; i++) threads.push("a", 1, [held] {});
    gate.open();
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace qkv
