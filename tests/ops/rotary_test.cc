// Rotary position embedding: kernel against reference, rotation against its formula, and the inverse rotation.
#include "ops/rotary.h"

#include <cmath>

#include "core/to_size.h"
#include "ops/reference/rotary_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::for_each_isa;
using testing::Padded;

constexpr int64_t kPositions = 50;

std::vector<int32_t> positions_of(int64_t N) {
  Random random(3, Stream::test);
  std::vector<int32_t> positions;
  for (int64_t n = 0; n < N; n++) positions.push_back(static_cast<int32_t>(random.below(kPositions)));
  return positions;
}

template <class Real>
std::vector<Real> table_of(int64_t width) {
  std::vector<Real> table(to_size(kPositions * width));
  rotary_table<Real>({}, {table.data(), kPositions, width});
  return table;
}

TEST(Rotary, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const int64_t N : {0, 1, 300})
      for (const auto& [width, head_width] :
           {std::pair{2, 2}, {10, 10}, {32, 32}, {50, 50}, {128, 128}, {2, 5}, {10, 33}, {32, 80}, {50, 51}})
        for (const Rotation turn : {Rotation::forward, Rotation::back}) {
          const std::vector<int32_t> positions = positions_of(N);
          const auto plain = [&]<class Real>(Real) {
            Padded<Real> x({N, 3 * head_width}, 1);
            std::vector<float> rounded = table_of<float>(width);  // the same table for both
            std::vector<Real> table(rounded.begin(), rounded.end());
            reference::rotary<Real>(x.view(), head_width, positions, Matrix<Real>(table.data(), kPositions, width),
                                    turn);
            return x.values();
          };
          std::vector<float> table = table_of<float>(width);
          Padded<float> x({N, 3 * head_width}, 1);
          rotary<float>(x.view(), head_width, positions, Matrix<float>(table.data(), kPositions, width), turn);
          x.expect_gaps_untouched();
          testing::expect_as_accurate(x.values(), plain(0.0f), plain(0.0), 2);
        }
  });
}

TEST(Rotary, BaseAndScaleChangeTheAngles) {
  std::vector<double> table(4);
  rotary_table<double>({.base = 100, .scale = 4}, {table.data(), 1, 4});
  EXPECT_EQ(table, (std::vector<double>{1, 1, 0, 0}));
  std::vector<double> two(8);
  rotary_table<double>({.base = 100, .scale = 4}, {two.data(), 2, 4});
  EXPECT_NEAR(two[6], std::sin(1 / 4.0), 1e-15);
  EXPECT_NEAR(two[7], std::sin(1 / 40.0), 1e-15);  // 100^(−2/4) = 1/10
}

// Returns the rates of 8 pairs, which are the angles at position 1.
std::vector<double> rates_of(const RotaryConfig& rates) {
  std::vector<double> table(32), angles;
  rotary_table<double>(rates, {table.data(), 2, 16});
  for (size_t j = 0; j < 8; j++) angles.push_back(std::atan2(table[24 + j], table[16 + j]));
  return angles;
}

// Pair j makes 1000 · 10^(−j/2) / 2π turns in 1000 tokens: 159, 50, 16, 5.0, 1.6, 0.5, …
TEST(Rotary, OnlySlowPairsAreScaled) {
  RotaryConfig rates{10000, 8, RotaryScaling::llama3, 1000, 1, 4};
  std::vector<double> found = rates_of(rates);
  const auto rate = [](int j) { return std::pow(10, -j / 2.0); };
  for (int j = 0; j < 4; j++) EXPECT_NEAR(found[to_size(j)], rate(j), 1e-15) << j;
  for (int j = 5; j < 8; j++) EXPECT_NEAR(found[to_size(j)], rate(j) / 8, 1e-15) << j;
  const double kept = (1000 * rate(4) / (2 * M_PI) - 1) / 3;
  EXPECT_NEAR(found[4], rate(4) * (kept + (1 - kept) / 8), 1e-15);

  // The pairs that make 32 turns and 1 turn: ⌊1.39…⌋ = 1 and ⌈4.40…⌉ = 5.
  rates.scaling = RotaryScaling::yarn, rates.high = 32, rates.factor = 1.25;
  found = rates_of(rates);
  for (int j = 0; j < 8; j++) {
    const double divided = std::clamp((j - 1) / 4.0, 0.0, 1.0);
    EXPECT_NEAR(found[to_size(j)], rate(j) * (1 - divided + divided / 8), 1e-15) << j;
  }
  std::vector<double> table(16);
  rotary_table<double>(rates, {table.data(), 1, 16});
  EXPECT_EQ(table[0], 1.25);
}

TEST(Rotary, RotatesPairsByTheAngleOfTheirPosition) {
  std::vector<double> table = table_of<double>(4), x = {1, 2, 3, 4};
  rotary<double>(Matrix<double>(x.data(), 1, 4), 4, std::vector<int32_t>{7},
                 Matrix<double>(table.data(), kPositions, 4), Rotation::forward);
  const double fast = 7, slow = 7 / 100.0;  // 10000^(−2/4)
  EXPECT_NEAR(x[0], std::cos(fast) - 3 * std::sin(fast), 1e-14);
  EXPECT_NEAR(x[2], std::sin(fast) + 3 * std::cos(fast), 1e-14);
  EXPECT_NEAR(x[1], 2 * std::cos(slow) - 4 * std::sin(slow), 1e-14);
  EXPECT_NEAR(x[3], 2 * std::sin(slow) + 4 * std::cos(slow), 1e-14);
}

TEST(Rotary, LeavesTheRestOfEachHeadUnchanged) {
  std::vector<double> table = table_of<double>(2), x = {1, 2, 3, 4, 5, 6};
  rotary<double>(Matrix<double>(x.data(), 1, 6), 3, std::vector<int32_t>{1},
                 Matrix<double>(table.data(), kPositions, 2), Rotation::forward);
  EXPECT_NEAR(x[0], std::cos(1) - 2 * std::sin(1), 1e-15);
  EXPECT_NEAR(x[4], 4 * std::sin(1) + 5 * std::cos(1), 1e-15);
  EXPECT_EQ(x[2], 3);
  EXPECT_EQ(x[5], 6);
}

TEST(Rotary, BackwardInvertsForward) {
  std::vector<double> table = table_of<double>(6);
  const std::vector<double> before = testing::normal<double>(5 * 12, 1);
  std::vector<double> x = before;
  for (const Rotation turn : {Rotation::forward, Rotation::back})
    rotary<double>(Matrix<double>(x.data(), 5, 12), 6, positions_of(5), Matrix<double>(table.data(), kPositions, 6),
                   turn);
  EXPECT_LE(testing::max_error(x, before), 1e-14);
}

}  // namespace
}  // namespace qkv
