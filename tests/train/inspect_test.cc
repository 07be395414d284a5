// qkv::inspect reports the memory that training allocates.
#include <gtest/gtest.h>

#include "core/tree_sum.h"
#include "io/runs/run.h"
#include "qkv/runs.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {
namespace {

// The optimizer pads each of its arrays, at most five, to a multiple of the arena's alignment.
constexpr int64_t kMaxPadding = 5 * 64;

TEST(InspectTraining, CountsWhatTheTrainerAllocates) {
  const testing::TempDir directory;
  const RunDirectory run(directory / "run");
  testing::create_recommender(run.root(), testing::small_log(200));
  for (const Moments moments : {Moments::float32, Moments::bfloat16, Moments::int8})
    for (const auto& [ema_decay, shards] : {std::pair(0.0, 1), {0.999, 1}, {0.999, 5}}) {
      TrainingConfig training;
      training.shards = shards;
      training.moments = moments;
      training.ema_decay = ema_decay;
      write_fields(run.training(), training);
      const RunInfo info = inspect(run.root());
      Transformer<float> model(info.model);
      model.parameters().allocate_gradients();
      const OptimizerState optimizer(training, model.parameters());
      const size_t weights = model.parameters().values().size_bytes();
      const TreeSum gradient_sum(shards, model.parameters().size());
      const auto allocated = static_cast<int64_t>(3 * weights + gradient_sum.bytes() + optimizer.bytes());
      EXPECT_LE(info.training_bytes, allocated);
      EXPECT_GE(info.training_bytes, allocated - kMaxPadding);
    }
}

}  // namespace
}  // namespace qkv
