// Allocations while messages are carried between ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "ranks/collectives.h"
#include "tests/allocation/malloc.h"
#include "tests/support/forked_ranks.h"

namespace qkv {
namespace {

constexpr double kTimeout = 8;  // seconds; a quarter of it is between two beats

// Exchanges messages for longer than the time between two beats.
bool allocates_nothing(Communicator& communicator) {
  std::vector<std::byte> bytes(to_size(communicator.size()) * 4096);
  std::vector<ByteParts> parts(to_size(communicator.size()));
  for (size_t i = 0; i < bytes.size(); i += 64) parts[i / 4096].push_back(std::span(bytes).subspan(i, 64));
  share_all(communicator, parts);
  const int64_t count = testing::allocations_of([&] {
    for (int i = 0; i < 250; i++) {
      share_all(communicator, parts);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  communicator.leave();
  return count == 0;
}

TEST(CommunicationThread, AllocatesNothingAfterTheFirstMessages) {
  EXPECT_EQ(testing::failures_on_ranks(3, allocates_nothing, kTimeout), 0);
}

}  // namespace
}  // namespace qkv
