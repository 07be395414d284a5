// Weights in files by parameter name, and the mean of several files.
#include "io/weights/weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/to_size.h"
#include "io/weights/quantized_weights.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::TempDir;

TEST(AverageWeights, IsTheMeanOfTheFilesComputedInDouble) {
  const TempDir directory;
  Transformer<float> model(testing::small_config());
  ParameterList<float>& list = model.parameters();
  std::vector<double> mean(list.values().size());
  std::vector<std::string> paths;
  for (const uint64_t seed : {1, 2, 3}) {
    testing::randomize(list, seed);
    paths.push_back(directory / std::to_string(seed));
    save_weights(paths.back(), list, list.values());
    for (size_t i = 0; i < mean.size(); i++) mean[i] += static_cast<double>(list.values()[i]);
  }
  Arena arena;
  std::vector<float> averaged(mean.size());
  average_weights(paths, list, averaged, arena);
  for (size_t i = 0; i < mean.size(); i++) EXPECT_EQ(averaged[i], static_cast<float>(mean[i] / 3));
  EXPECT_EQ(arena.used(), 0u);
}

TEST(AverageWeights, RejectsTheWeightsOfAnotherModel) {
  const TempDir directory;
  ModelConfig config = testing::small_config();
  const Transformer<float> model(config);
  config.output_bias = true;
  const Transformer<float> larger(config);
  save_weights(directory / "larger", larger.parameters(), larger.parameters().values());
  Arena arena;
  const std::vector<std::string> paths = {directory / "larger"};
  EXPECT_EQ(error_of([&] { average_weights(paths, model.parameters(), model.parameters().values(), arena); }),
            paths[0] + ": tensor \"output.bias\" is not part of the model");
}

// 24 columns everywhere, so that all matrices can have 8 bits.
ModelConfig int8_config() {
  ModelConfig config = testing::small_config();
  config.d_model = config.ffn = 24;
  config.attention.key_width = config.attention.value_width = 12;
  return config;
}

TEST(LoadModel, AllocatesNothingFor8BitWeights) {
  const TempDir directory;
  Transformer<float> model(int8_config());
  testing::randomize(model.parameters(), 1);
  quantize(model.parameters());
  save_quantized(directory / "w", model.parameters());
  const auto loaded = load_model(directory / "w", int8_config());
  size_t rest = 0;
  for (size_t i = 0; i < model.parameters().all().size(); i++) {
    const Parameter<float>&p = model.parameters().all()[i], &q = loaded->parameters().all()[i];
    EXPECT_EQ(q.value == nullptr, p.least_bits < 32) << p.name;
    if (p.least_bits < 32) continue;
    rest += to_size(p.size());
    EXPECT_TRUE(std::equal(p.value, p.value + p.size(), q.value)) << p.name;
  }
  EXPECT_EQ(loaded->parameters().values().size(), rest);
}

}  // namespace
}  // namespace qkv
