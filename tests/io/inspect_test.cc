// qkv::inspect reports the kind of a run and the memory that its weights and its training take.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/runs/run.h"
#include "qkv/runs.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

class InspectTest : public ::testing::Test {
 protected:
  InspectTest() { testing::create_recommender(run.root(), testing::small_log(20)); }

  // Bytes of training beyond weights, gradients and the copy that is evaluated.
  int64_t optimizer_bytes(Moments moments, double ema_decay) const {
    TrainingConfig training;
    training.moments = moments;
    training.ema_decay = ema_decay;
    write_fields(run.training(), training);
    const RunInfo info = inspect(run.root());
    return info.training_bytes - 3 * 4 * info.parameter_count;
  }

  testing::TempDir directory;
  RunDirectory run{directory / "run"};
};

TEST_F(InspectTest, ReportsKindFormatAndVersion) {
  const RunInfo info = inspect(run.root());
  EXPECT_EQ(info.kind, RunKind::recommender);
  EXPECT_EQ(info.format, kRunFormat);
  EXPECT_EQ(info.version, read_config(run).version);
  EXPECT_TRUE(info.has_weights);
  EXPECT_EQ(info.serving_bytes, 4 * info.parameter_count);
}

TEST_F(InspectTest, CountsTheOptimizersMemoryByItsMoments) {
  const int64_t P = inspect(run.root()).parameter_count, blocks = (P + 255) / 256;
  ASSERT_NE(P, 256 * blocks);
  EXPECT_EQ(optimizer_bytes(Moments::float32, 0), 8 * P);
  EXPECT_EQ(optimizer_bytes(Moments::float32, 0.999), 12 * P);
  EXPECT_EQ(optimizer_bytes(Moments::bfloat16, 0), 4 * 256 * blocks);
  EXPECT_EQ(optimizer_bytes(Moments::int8, 0), 2 * (256 + 4) * blocks);
  EXPECT_EQ(optimizer_bytes(Moments::int8, 0.999), 2 * (256 + 4) * blocks + 4 * P);
}

TEST_F(InspectTest, CountsNoTrainingMemoryForARunThatCannotBeTrained) {
  EXPECT_EQ(inspect(run.root()).training_bytes, 0);
  std::filesystem::remove(run.model());
  EXPECT_FALSE(inspect(run.root()).has_weights);
}

}  // namespace
}  // namespace qkv
