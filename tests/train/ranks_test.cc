#include "train/loop/ranks.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

// A rank on a machine of 32 processors.
Hello rank_on(const std::string& host, int32_t threads, int32_t allowed) {
  return {"qkv 0.1.0", "avx2", host, threads, allowed, 32};
}

TEST(UnusedProcessors, OfARankThatIsBoundAreReported) {
  EXPECT_EQ(unused_processors({rank_on("c1", 32, 32), rank_on("c2", 1, 1)}),
            "rank 1 (c2): is bound to 1 of the 32 processors of its machine; to use all, start the job by mpirun "
            "--bind-to none, or srun --cpus-per-task");
}

TEST(UnusedProcessors, AreNotReportedIfTheUserChoseOrOtherRanksUseThem) {
  EXPECT_EQ(unused_processors({rank_on("c1", 32, 32), rank_on("c2", 32, 32)}), "");
  EXPECT_EQ(unused_processors({rank_on("c1", 4, 32), rank_on("c2", 4, 32)}), "") << "--threads 4";
  EXPECT_EQ(unused_processors({rank_on("c1", 16, 16), rank_on("c1", 16, 16)}), "") << "a rank for each socket";
}

}  // namespace
}  // namespace qkv
