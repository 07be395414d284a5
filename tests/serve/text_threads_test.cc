// Work on long texts: the order in which it starts, and what is left at the end.
#include "serve/engine/text_threads.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

namespace qkv {
namespace {

// Blocks the only thread, so that what follows waits.
class Gate {
 public:
  void hold(TextThreads& threads) {
    threads.push("", 0, [this] {
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
