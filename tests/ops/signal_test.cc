// Products while signals arrive: a handler must not run on a kernel's borrowed stack pointer
// (src/ops/cpu/linear/linear.cc).
#include <signal.h>
#include <sys/time.h>

#include <atomic>

#include "core/to_size.h"
#include "ops/linear.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

std::atomic<int> ticks = 0;

TEST(Signals, HandlersDoNotCorruptTheHeapOrTheProduct) {
  const int64_t N = 300, in = 384, out = 256;  // a product that oneDNN computes
  const std::vector<float> x = testing::normal<float>(N * in, 1), w = testing::normal<float>(out * in, 2);
  std::vector<float> first(to_size(N * out)), y = first;
  Arena arena;
  const auto product = [&](std::vector<float>& to) {
    linear<float>({x.data(), N, in}, {w.data(), out, in}, nullptr, {to.data(), N, out}, arena);
  };
  product(first);

  struct sigaction handler = {}, before = {};
  handler.sa_handler = [](int) { ticks++; };
  handler.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &handler, &before);
  const itimerval every{{0, 100}, {0, 100}}, never{};
  setitimer(ITIMER_REAL, &every, nullptr);
  std::vector<std::vector<char>> blocks;  // adjacent heap blocks, checked by the allocator
  for (int i = 0; ticks < 200 || i < 100; i++) {
    product(y);
    ASSERT_EQ(y, first);
    blocks.emplace_back(to_size(1000 * (i % 50 + 1)));
    if (blocks.size() > 20) blocks.erase(blocks.begin());
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_GE(ticks, 200);
}

}  // namespace
}  // namespace qkv
