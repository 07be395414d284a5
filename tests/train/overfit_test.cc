// Models learn from random examples to copy and to reverse sequences, with 100 % accuracy on new ones. This tests
// model, gradients, optimizer and search together.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/search/batched.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {
namespace {

using testing::append_pair;
using testing::random_tokens;
using testing::with_threads;

constexpr int64_t kVocab = 13, kShortest = 2, kLongest = 5;

ModelConfig config_for_symbols() {
  ModelConfig c = testing::small_config();
  c.d_model = 32;
  c.attention.heads = 2;
  c.attention.key_width = c.attention.value_width = 16;
  c.ffn = 64;
  c.dropout.residual = 0;
  return c;
}

enum class CopyTask { copy, reverse };

std::vector<int32_t> answer(CopyTask task, std::vector<int32_t> x) {
  if (task == CopyTask::reverse) std::reverse(x.begin(), x.end());
  return x;
}

std::vector<int32_t> random_symbols(Random& random) {
  const int64_t length = kShortest + static_cast<int64_t>(random.below(kLongest - kShortest + 1));
  return random_tokens(length, kVocab, random);
}

// Returns the share of 100 new sequences for which greedy search finds the answer.
double train_and_test(const ModelConfig& config, CopyTask task, int64_t steps, bool int8) {
  TrainingConfig training;
  training.learning_rate = 5e-3;
  training.warmup_steps = 50;
  training.schedule = Schedule::cosine;
  training.max_steps = steps;
  training.ema_decay = 0;
  Transformer<float> model(config);
  model.parameters().allocate_gradients();
  model.parameters().initialize(1);
  OptimizerState optimizer(training, model.parameters());
  Random random(1, Stream::test);
  Arena arena;
  for (int64_t step = 1; step <= steps; step++) {
    Batch batch;
    for (int i = 0; i < 32; i++) {
      const std::vector<int32_t> x = random_symbols(random);
      append_pair(batch, x, answer(task, x));
    }
    Context context{arena, true, 1, static_cast<uint32_t>(step), false, int8};
    optimizer.update(step, model.loss_and_gradient(batch, Objective{0.1}, context).tokens);
  }

  SearchOptions greedy;
  greedy.beam = 1;
  std::vector<std::vector<int32_t>> sources, wanted;
  for (int i = 0; i < 100; i++) {
    std::vector<int32_t> x = random_symbols(random);
    wanted.push_back(answer(task, x));
    x.push_back(greedy.end);
    sources.push_back(std::move(x));
  }
  const auto found = translate_ids(model, sources, greedy, arena);
  double right = 0;
  for (size_t i = 0; i < found.size(); i++) right += found[i].front().ids == wanted[i];
  return right / 100;
}

// On one thread, as the steps are too small to divide.
double score(const ModelConfig& config, CopyTask task, int64_t steps, bool int8 = false) {
  return with_threads(1, [&] { return train_and_test(config, task, steps, int8); });
}

TEST(Overfit, PostNormLearnsToCopy) { EXPECT_EQ(score(config_for_symbols(), CopyTask::copy, 400), 1); }

TEST(Overfit, LearnsToCopyWithProductsInEightBits) {
  EXPECT_EQ(score(config_for_symbols(), CopyTask::copy, 400, true), 1);
}

TEST(Overfit, PostNormLearnsToReverse) { EXPECT_EQ(score(config_for_symbols(), CopyTask::reverse, 400), 1); }

TEST(Overfit, PreNormLearnsToReverse) {
  ModelConfig config = config_for_symbols();
  config.norm.position = NormPosition::pre;
  config.norm.final = true;
  config.activation = Activation::gelu;
  EXPECT_EQ(score(config, CopyTask::reverse, 400), 1);
}

}  // namespace
}  // namespace qkv
