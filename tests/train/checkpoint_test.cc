// Saved states of training are restored exactly, or refused.
#include "train/loop/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "core/random.h"
#include "core/system/file_descriptor.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::spill;
using testing::TempDir;

// Parameters and optimizer with random bytes; with seed 0, as initialized.
struct State {
  explicit State(uint64_t seed, int64_t size = 19, double ema_decay = 0.9, Moments moments = Moments::float32) {
    config.ema_decay = ema_decay;
    config.moments = moments;
    parameters.add("w", {size}, Init::zeros());
    parameters.allocate();
    parameters.allocate_gradients();
    optimizer.emplace(config, parameters);
    if (seed == 0) return;
    Random random(seed, Stream::test);
    for (const std::span<std::byte> bytes : arrays())
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  }
  std::vector<std::span<std::byte>> arrays() const {
    std::vector<std::span<std::byte>> all = {std::as_writable_bytes(parameters.values())};
    for (const OptimizerState::Array& array : optimizer->arrays()) all.push_back(array.bytes);
    return all;
  }
  std::vector<std::byte> all() const {
    std::vector<std::byte> bytes;
    for (const std::span<std::byte> array : arrays()) bytes.insert(bytes.end(), array.begin(), array.end());
    return bytes;
  }

  TrainingConfig config;
  ParameterList<float> parameters;
  std::optional<OptimizerState> optimizer;
};

Progress sample_progress() { return {1234, {5, 2, 67, {8, 9}}, 0.1 + 0.2, 1200, 3, {1000, 1100, 1200}}; }

void save(const std::string& path, const State& state) {
  save_state(path, sample_progress(), "the text", state.parameters, *state.optimizer);
}

std::string load_error(const std::string& path, State& state, const std::string& data = "the text") {
  return error_of([&] { load_state(path, data, state.parameters, *state.optimizer); });
}

TEST(Checkpoint, IsRestoredAsSaved) {
  const TempDir directory;
  for (const auto& [ema_decay, moments] :
       {std::pair{0.9, Moments::float32}, {0.0, Moments::float32}, {0.9, Moments::bfloat16}, {0.9, Moments::int8}}) {
    const State written(1, 300, ema_decay, moments);
    State read(0, 300, ema_decay, moments);
    save(directory / "state", written);
    const Progress p = load_state(directory / "state", "the text", read.parameters, *read.optimizer);
    const Progress wanted = sample_progress();
    EXPECT_EQ(read.all(), written.all());
    EXPECT_EQ(p.step, wanted.step);
    EXPECT_EQ(p.data, wanted.data);
    EXPECT_EQ(p.best, wanted.best);
    EXPECT_EQ(p.best_step, wanted.best_step);
    EXPECT_EQ(p.evaluations_since_best, wanted.evaluations_since_best);
    EXPECT_EQ(p.best_learned, wanted.best_learned);
    EXPECT_EQ(p.evaluated_steps, wanted.evaluated_steps);
  }
}

TEST(Checkpoint, KeepsANegativeBestScoreAndAnEmptyList) {
  const TempDir directory;
  State state(1);
  Progress p;
  p.best = -1.0 / 3;
  save_state(directory / "state", p, "", state.parameters, *state.optimizer);
  const Progress read = load_state(directory / "state", "", state.parameters, *state.optimizer);
  EXPECT_EQ(read.best, p.best);
  EXPECT_TRUE(read.evaluated_steps.empty());
  EXPECT_FALSE(read.best_learned);
  EXPECT_FALSE(read.best_loss);
}

TEST(Checkpoint, KeepsWhatPatienceComparesWith) {
  const TempDir directory;
  State state(1);
  Progress p;
  p.best_learned = 0.1 + 0.2;
  p.best_loss = 0.3 - 0.1;
  save_state(directory / "state", p, "", state.parameters, *state.optimizer);
  const Progress read = load_state(directory / "state", "", state.parameters, *state.optimizer);
  EXPECT_EQ(read.best_learned, p.best_learned);
  EXPECT_EQ(read.best_loss, p.best_loss);
}

TEST(Checkpoint, RefusesAStateOfOtherData) {
  const TempDir directory;
  State state(1);
  save(directory / "state", state);
  EXPECT_EQ(load_error(directory / "state", state, "another text"),
            directory / "state" + ": was saved with different training data; use the same data or another directory");
}

TEST(Checkpoint, RefusesAStateOfAnotherModel) {
  const TempDir directory;
  State larger(1, 20), without_average(1, 19, 0);
  save(directory / "state", State(1));
  EXPECT_EQ(load_error(directory / "state", larger),
            directory / "state" + ": tensor \"weights\": must be F32 [20] (is F32 [19])");
  save(directory / "state", without_average);
  State with_average(1);
  EXPECT_EQ(load_error(directory / "state", with_average),
            directory / "state" + ": tensor \"ema\": is missing (expected F32 [19])");
  State packed(1, 19, 0, Moments::int8);
  EXPECT_EQ(load_error(directory / "state", packed),
            directory / "state" + ": tensor \"adam.m\": must be U8 [256] (is F32 [19])");
}

TEST(Checkpoint, RefusesAStateWhoseRowsAreAheadOfItsStep) {
  const TempDir directory;
  const TrainingConfig config;
  ParameterList<float> parameters;
  parameters.add("table", {3, 2}, Init::zeros());
  parameters.allocate();
  OptimizerState optimizer(config, parameters, true);
  const std::string path = directory / "state";
  const auto load = [&] { load_state(path, "", parameters, optimizer); };
  const auto save_with_step = [&](int32_t step) {
    const std::span<std::byte> last = optimizer.arrays().back().bytes;
    std::memcpy(last.data() + sizeof step, &step, sizeof step);
    save_state(path, sample_progress(), "", parameters, optimizer);
  };
  save_with_step(1234);
  EXPECT_NO_THROW(load());
  save_with_step(1235);
  EXPECT_EQ(error_of(load), path + ": \"adam.rows_step\" must be between 0 and 1234, the step (is 1235)");
  save_with_step(-1);
  EXPECT_EQ(error_of(load), path + ": \"adam.rows_step\" must be between 0 and 1234, the step (is -1)");
}

TEST(Checkpoint, RefusesMissingTruncatedAndInvalidStates) {
  const TempDir directory;
  State state(1);
  const std::string path = directory / "state";
  expect_contains(load_error(path, state), path);
  save(path, state);
  const std::string whole = read_file(path, 1 << 20);
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    spill(path, whole.substr(0, size));
    expect_contains(load_error(path, state), path);
  }
  const auto replaced = [&](const std::string& from, const std::string& to) {  // of the same length
    std::string broken = whole;
    broken.replace(broken.find(from), from.size(), to);
    spill(path, broken);
    return load_error(path, state);
  };
  EXPECT_EQ(replaced("training state 2", "training state 1"), path + ": not a qkv training state 2");
  EXPECT_EQ(replaced("\"step\":\"1234\"", "\"step\":\"12x4\""), path + ": \"step\" is missing or not a number");
  EXPECT_EQ(replaced("\"step\":\"1234\"", "\"step\":\"-234\""),
            path + ": \"step\" must be between 0 and 2147483648 (is -234)");
  EXPECT_EQ(replaced("\"epoch\"", "\"epocc\""), path + ": \"epoch\" is missing or not a number");
  EXPECT_EQ(replaced("\"evaluations\":\"3\"", "\"evaluations\":\"9\""),
            path + ": \"evaluation.3\" is missing or not a number");
}

}  // namespace
}  // namespace qkv
