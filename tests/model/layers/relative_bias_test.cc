// The buckets of distances of a relative bias.
#include "model/layers/relative_bias.h"

#include <gtest/gtest.h>

#include "core/to_size.h"

namespace qkv {
namespace {

// Returns the distances at which the bucket changes, and the buckets there.
std::vector<std::pair<int64_t, int64_t>> changes(const AttentionConfig& config, bool causal, int64_t sign) {
  std::vector<std::pair<int64_t, int64_t>> found;
  for (int64_t x = 0; x < 300; x++) {
    const int64_t bucket = relative_bucket(sign * x, config, causal);
    if (found.empty() || found.back().second != bucket) found.emplace_back(x, bucket);
  }
  return found;
}

using Changes = std::vector<std::pair<int64_t, int64_t>>;

// Computed with _relative_position_bucket of T5Attention in transformers 5.
TEST(RelativeBias, BucketsAreThoseOfTransformers) {
  AttentionConfig config;
  config.relative_buckets = 32;
  const Changes encoder = {{0, 0}, {1, 1},  {2, 2},   {3, 3},   {4, 4},   {5, 5},   {6, 6},   {7, 7},
                           {8, 8}, {12, 9}, {16, 10}, {23, 11}, {32, 12}, {46, 13}, {64, 14}, {91, 15}};
  Changes later = encoder;
  for (auto& [distance, bucket] : later) bucket += distance > 0 ? 16 : 0;
  EXPECT_EQ(changes(config, false, -1), encoder);
  EXPECT_EQ(changes(config, false, 1), later);
  EXPECT_EQ(changes(config, true, -1),
            (Changes{{0, 0},   {1, 1},   {2, 2},   {3, 3},   {4, 4},   {5, 5},   {6, 6},   {7, 7},
                     {8, 8},   {9, 9},   {10, 10}, {11, 11}, {12, 12}, {13, 13}, {14, 14}, {15, 15},
                     {16, 16}, {19, 17}, {21, 18}, {24, 19}, {27, 20}, {31, 21}, {35, 22}, {40, 23},
                     {46, 24}, {52, 25}, {59, 26}, {67, 27}, {77, 28}, {87, 29}, {99, 30}, {113, 31}}));
  EXPECT_EQ(changes(config, true, 1), (Changes{{0, 0}}));
  config.relative_buckets = 7;
  config.relative_distance = 20;
  EXPECT_EQ(changes(config, false, -1), (Changes{{0, 0}, {1, 1}, {5, 2}}));
  EXPECT_EQ(changes(config, true, -1), (Changes{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {5, 4}, {8, 5}, {13, 6}}));
}

}  // namespace
}  // namespace qkv
