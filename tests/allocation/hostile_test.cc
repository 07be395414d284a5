// Memory that a reader takes for checkpoints of PyTorch that nobody wrote in good faith.
#include <gtest/gtest.h>

#include "convert/formats/torch_checkpoint.h"
#include "tests/allocation/malloc.h"
#include "tests/support/errors.h"
#include "tests/support/hostile_checkpoints.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::peak_bytes_of;

TEST(Allocations, AreMeasured) {
  const auto take = [](size_t size) { return std::string(size, 'x').size(); };
  const int64_t peak = peak_bytes_of([&] {
    take(1 << 20);
    take(3 << 20);
    take(2 << 20);
  });
  EXPECT_GE(peak, 3 << 20);
  EXPECT_LT(peak, 4 << 20);
}

TEST(HostileCheckpoints, TakeAtMostTheirSizeAnd64MB) {
  constexpr int64_t kSpare = int64_t{64} << 20;
  const std::vector<testing::HostileCheckpoint> files = testing::hostile_checkpoints();
  EXPECT_GE(files.size(), 50u);
  for (const testing::HostileCheckpoint& file : files) {
    const testing::TempFile spilled("model.pt", file.bytes);
    std::string error;
    const int64_t peak =
        peak_bytes_of([&] { error = testing::error_of([&] { TorchCheckpoint::open(spilled.path()); }); });
    EXPECT_LE(peak, std::ssize(file.bytes) + kSpare) << file.name;
    EXPECT_FALSE(error.empty()) << file.name;
  }
}

}  // namespace
}  // namespace qkv
