// The memory that a feed-forward layer keeps for the backward pass.
#include "model/layers/feed_forward.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

// Returns the floats per token that a forward pass keeps, of a layer with 16 outputs and 64 activations.
int64_t kept_floats(Activation kind, bool gated) {
  ModelConfig config;
  config.d_model = 16, config.ffn = 64, config.activation = kind, config.gated_ffn = gated;
  ParameterList<float> list;
  DropoutSites sites;
  const FeedForward<float> layer(list, "feed_forward", config, sites);
  list.allocate();
  Arena arena;
  Context context{arena, true};
  constexpr int64_t kTokens = 32;
  const Matrix<float> x = arena.zeros<float>(kTokens, config.d_model);
  const size_t before = arena.used();
  FeedForward<float>::Saved saved;
  layer.forward(x, context, saved);
  return static_cast<int64_t>((arena.used() - before) / sizeof(float)) / kTokens;
}

TEST(FeedForward, KeepsItsOutputAndTheSumsBeforeTheActivation) {
  for (const Activation kind : {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh}) {
    EXPECT_EQ(kept_floats(kind, false), 16 + 64);
    EXPECT_EQ(kept_floats(kind, true), 16 + 2 * 64);
  }
}

}  // namespace
}  // namespace qkv
