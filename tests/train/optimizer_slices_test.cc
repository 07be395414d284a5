// Optimizers that each hold the state of a slice, put together, have the bytes of one that holds all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "core/to_size.h"
#include "tests/support/numeric.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {
namespace {

using testing::normal;

constexpr int64_t kSteps = 3, kTokensOfStep = 7, kMoments = 256;

// Three ranges of trained parameters around frozen ones: of several blocks and a part, of whole blocks, and of a part.
struct Model {
  Model() {
    for (const auto& [name, size] : {std::pair<const char*, int64_t>("a", 4 * kSliceBlock),
                                     {"b", kSliceBlock + 300},
                                     {"frozen.1", 50},
                                     {"c", 2 * kSliceBlock},
                                     {"frozen.2", 9},
                                     {"d", 77}})
      parameters.add(name, {size}, Init::zeros());
    parameters.freeze([](const Parameter<float>& p) { return p.name.starts_with("frozen"); });
    parameters.allocate();
    parameters.allocate_gradients();
    std::ranges::copy(normal<float>(parameters.size(), 1), parameters.values().begin());
  }
  std::vector<float> weights() const { return {parameters.values().begin(), parameters.values().end()}; }

  ParameterList<float> parameters;
};

std::vector<float> gradient_of(int64_t step, int64_t size) {
  return normal<float>(size, static_cast<uint64_t>(100 + step), 0.1);
}

std::vector<double> copy_of(std::span<const double> x) { return {x.begin(), x.end()}; }

// The whole optimizer, and what it computed in each step.
struct Whole {
  explicit Whole(const TrainingConfig& config) : optimizer(config, model.parameters) {
    for (int64_t step = 1; step <= kSteps; step++) {
      std::ranges::copy(gradient_of(step, model.parameters.size()), model.parameters.gradients().begin());
      norms.push_back(
          optimizer.update(step, kTokensOfStep, [&](std::span<double> all) { squares.push_back(copy_of(all)); }));
    }
  }

  Model model;
  OptimizerState optimizer;
  std::vector<std::vector<double>> squares;  // of each call of gather
  std::vector<double> norms;
};

// A rank. The gradients of others are not numbers. The sums of their blocks come from the whole optimizer.
struct Rank {
  Rank(const TrainingConfig& config, const Whole& whole, int64_t rank, int64_t ranks)
      : slices(slices_of(model.parameters, rank, ranks)), optimizer(config, model.parameters, slices) {
    size_t calls = 0;
    for (int64_t step = 1; step <= kSteps; step++) {
      set_gradients(step);
      const double norm = optimizer.update(step, kTokensOfStep, [&](std::span<double> all) {
        const std::vector<double>& wanted = whole.squares.at(calls++);
        for_own_blocks([&](size_t block) { EXPECT_EQ(all[block], wanted[block]) << "block " << block; });
        std::ranges::copy(wanted, all.begin());
      });
      EXPECT_EQ(norm, whole.norms[to_size(step - 1)]);
    }
  }

  void set_gradients(int64_t step) {
    const std::vector<float> gradient = gradient_of(step, model.parameters.size());
    std::ranges::fill(model.parameters.gradients(), std::numeric_limits<float>::quiet_NaN());
    const auto ranges = model.parameters.trained_ranges();
    for (const Slice& s : slices) {
      const int64_t first = ranges[to_size(s.range)].gradient + s.first;
      std::copy_n(&gradient[to_size(first)], s.size, &model.parameters.gradients()[to_size(first)]);
    }
  }

  template <class F>
  void for_own_blocks(F&& f) const {
    const auto ranges = model.parameters.trained_ranges();
    for (const Slice& s : slices) {
      int64_t first = s.first / kSliceBlock;
      for (int64_t r = 0; r < s.range; r++) first += slice_blocks(ranges[to_size(r)].size);
      for (int64_t b = 0; b < slice_blocks(s.size); b++) f(to_size(first + b));
    }
  }

  Model model;
  std::vector<Slice> slices;
  OptimizerState optimizer;
};

// Returns the number of elements of an array of the state for `size` parameters.
int64_t length_in(const OptimizerState::Array& array, Moments moments, int64_t size) {
  const int64_t blocks = (size + kMoments - 1) / kMoments;
  if (array.name.ends_with("_scale")) return blocks;
  return array.name == "ema" || moments == Moments::float32 ? size : blocks * kMoments;
}

// Assigns the arrays and the weights of a rank to their places among those of all.
void put(const Rank& rank, Moments moments, std::vector<std::vector<std::byte>>& arrays, std::vector<float>& weights) {
  const auto ranges = rank.model.parameters.trained_ranges();
  const std::vector<OptimizerState::Array> own = rank.optimizer.arrays();
  for (size_t a = 0; a < own.size(); a++) {
    const size_t unit = own[a].size > 0 ? own[a].bytes.size() / to_size(own[a].size) : 0;
    int64_t from = 0;
    for (const Slice& s : rank.slices) {
      int64_t to = length_in(own[a], moments, s.first);
      for (int64_t r = 0; r < s.range; r++) to += length_in(own[a], moments, ranges[to_size(r)].size);
      const int64_t count = length_in(own[a], moments, s.size);
      std::memcpy(&arrays[a][to_size(to) * unit], &own[a].bytes[to_size(from) * unit], to_size(count) * unit);
      from += count;
    }
    EXPECT_EQ(from, own[a].size);
  }
  const std::vector<float> now = rank.model.weights();
  for (const Slice& s : rank.slices) {
    const int64_t first = ranges[to_size(s.range)].value + s.first;
    std::copy_n(&now[to_size(first)], s.size, &weights[to_size(first)]);
  }
}

void expect_same_bytes_in_slices(const TrainingConfig& config) {
  const Whole whole(config);
  const std::vector<OptimizerState::Array> wanted = whole.optimizer.arrays();
  for (const int64_t ranks : {1, 2, 3, 5}) {
    std::vector<std::vector<std::byte>> arrays;
    for (const OptimizerState::Array& array : wanted) arrays.emplace_back(array.bytes.size());
    const std::vector<float> start = Model().weights();
    std::vector<float> weights = start;
    for (int64_t r = 0; r < ranks; r++) put(Rank(config, whole, r, ranks), config.moments, arrays, weights);
    EXPECT_EQ(weights, whole.model.weights()) << ranks;
    for (size_t a = 0; a < wanted.size(); a++)
      EXPECT_TRUE(std::ranges::equal(arrays[a], wanted[a].bytes)) << wanted[a].name << ", " << ranks << " ranks";
  }
}

TrainingConfig config_of(Moments moments) {
  TrainingConfig c;
  c.moments = moments;
  c.learning_rate = 0.1;
  c.warmup_steps = 2;
  c.ema_decay = 0.9;
  return c;
}

constexpr Moments kAllMoments[] = {Moments::float32, Moments::bfloat16, Moments::int8};

TEST(OptimizerSlices, HaveTheBytesOfTheWhole) {
  for (const Moments moments : kAllMoments)
    for (const double ema_decay : {0.0, 0.9}) {
      TrainingConfig config = config_of(moments);
      config.ema_decay = ema_decay;
      expect_same_bytes_in_slices(config);
    }
}

TEST(OptimizerSlices, HaveTheBytesOfTheWholeWithClippingAndDecay) {
  for (const Moments moments : kAllMoments)
    for (const Optimizer optimizer : {Optimizer::adam, Optimizer::adamw}) {
      TrainingConfig config = config_of(moments);
      config.optimizer = optimizer;
      config.weight_decay = 0.1;
      config.clip_norm = 0.5;  // the norm is √(115,000 · 0.1²) / 7, about 5
      expect_same_bytes_in_slices(config);
    }
}

TEST(OptimizerSlices, TouchNoParameterOfOthers) {
  for (const double clip_norm : {0.0, 0.5}) {
    TrainingConfig config = config_of(Moments::bfloat16);
    config.clip_norm = clip_norm;
    const Whole whole(config);
    const Rank rank(config, whole, 1, 3);
    std::vector<bool> own(to_size(rank.model.parameters.size()));
    const auto ranges = rank.model.parameters.trained_ranges();
    for (const Slice& s : rank.slices)
      std::fill_n(own.begin() + ranges[to_size(s.range)].value + s.first, s.size, true);
    const std::vector<float> start = Model().weights(), now = rank.model.weights();
    std::vector<float> average(now.size());
    Rank(config, whole, 1, 3).optimizer.average_into(kSteps, average);
    const std::vector<float> wanted = whole.model.weights();
    int64_t averages = 0;  // that changed
    for (size_t i = 0; i < own.size(); i++) {
      EXPECT_EQ(now[i], own[i] ? wanted[i] : start[i]) << i;
      EXPECT_TRUE(own[i] || average[i] == start[i]) << i;
      averages += average[i] != start[i];
    }
    EXPECT_GT(averages, std::ranges::count(own, true) / 2);
    EXPECT_LT(rank.optimizer.bytes(), whole.optimizer.bytes() / 2);
  }
}

// Without clipping and with float32 moments the sums are those of sum_of_squares over each range.
TEST(OptimizerSlices, TheNormOfTheWholeIsThatOfTheGradient) {
  const Whole whole(config_of(Moments::float32));
  const Model model;
  for (int64_t step = 1; step <= kSteps; step++) {
    const std::vector<float> gradient = gradient_of(step, model.parameters.size());
    double squares = 0;
    for (const auto& range : model.parameters.trained_ranges())
      squares += sum_of_squares<float>(std::span(gradient).subspan(to_size(range.gradient), to_size(range.size)));
    EXPECT_EQ(whole.norms[to_size(step - 1)], std::sqrt(squares) * (1.0 / kTokensOfStep));
  }
}

}  // namespace
}  // namespace qkv
