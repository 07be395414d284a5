// Patterns of parameter names.
#include "model/layers/name_pattern.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace qkv {
namespace {

const std::vector<std::string> kNames = {"embedding.weight",
                                         "encoder.positions.weight",
                                         "encoder.layers.0.self_attention.q.weight",
                                         "encoder.layers.1.self_attention_norm.bias",
                                         "encoder.layers.10.feed_forward.first.weight",
                                         "encoder.norm.weight",
                                         "decoder.layers.0.self_attention.q.bias",
                                         "output.weight"};

// Returns the indices of the selected names.
std::vector<size_t> selected(const std::vector<std::string>& patterns) {
  const std::vector<bool> all = select_names(patterns, kNames, "freeze");
  std::vector<size_t> indices;
  for (size_t i = 0; i < all.size(); i++)
    if (all[i]) indices.push_back(i);
  return indices;
}

using Indices = std::vector<size_t>;

TEST(NamePatterns, SelectSegmentsThatFollowEachOther) {
  EXPECT_EQ(selected({"embeddings"}), (Indices{0, 1}));
  EXPECT_EQ(selected({"encoder"}), (Indices{1, 2, 3, 4, 5}));
  EXPECT_EQ(selected({"layers.0"}), (Indices{2, 6}));
  EXPECT_EQ(selected({"layers.0-9"}), (Indices{2, 3, 6}));
  EXPECT_EQ(selected({"encoder.layers.1-10"}), (Indices{3, 4}));
  EXPECT_EQ(selected({"q"}), (Indices{2, 6}));
  EXPECT_EQ(selected({"q.bias", "output"}), (Indices{6, 7}));
  EXPECT_EQ(selected({"*_norm"}), (Indices{3}));
  EXPECT_EQ(selected({"self_*.q", "*"}), (Indices{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(selected({}), Indices{});
}

TEST(NamePatterns, ThatSelectNothingAreAnError) {
  for (const char* pattern : {"encodr", "", ".", "layers.", "layers.3-2", "layers.11-", "layers.-1", "q.k",
                              "norm.weight.x", "layers.0.self_attention.q.weight.weight"})
    EXPECT_EQ(testing::error_of([&] {
                selected({"encoder", pattern});
              }),
              "freeze: no parameter matches \"" + std::string(pattern) +
                  "\" (there are embedding.weight, encoder.positions.weight, encoder.layers.0-10, encoder.norm.weight, "
                  "decoder.layers.0, output.weight)");
}

}  // namespace
}  // namespace qkv
