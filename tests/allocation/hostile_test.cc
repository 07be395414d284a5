// Memory that readers take for checkpoints of PyTorch and documents that nobody wrote in good faith.
#include <gtest/gtest.h>

#include "convert/formats/torch_checkpoint.h"
#include "documents/document.h"
#include "tests/allocation/malloc.h"
#include "tests/support/errors.h"
#include "tests/support/hostile_checkpoints.h"
#include "tests/support/hostile_documents.h"
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

constexpr int64_t kSpare = int64_t{64} << 20;

TEST(HostileCheckpoints, TakeAtMostTheirSizeAnd64MB) {
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

TEST(HostileDocuments, TakeAtMostTheirSizeAnd64MB) {
  for (const testing::HostileDocument& document : testing::hostile_documents()) {
    const int64_t peak = peak_bytes_of(
        [&] { testing::error_if_any([&] { Document(*find_document_format(document.format), document.bytes); }); });
    EXPECT_LE(peak, std::ssize(document.bytes) + kSpare) << document.name;
  }
}

}  // namespace
}  // namespace qkv
