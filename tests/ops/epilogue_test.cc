// Epilogues of products: each block of a result as the op of the whole matrix computes it.
#include "ops/epilogue.h"

#include <functional>
#include <utility>
#include <vector>

#include "ops/activation.h"
#include "ops/softcap.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::Padded;
using testing::Shape;

constexpr Shape kShape{70, 300};
const Dropout kDrop{0.25f, 5, 3, 1 << 12};

// Applies an epilogue to the blocks of a matrix and to a whole one, and expects these values in both.
void expect_blocks_and_whole(const std::function<Epilogue<float>(Matrix<float>)>& epilogue,
                             const std::vector<float>& wanted) {
  Padded<float> blocks(kShape, 1), whole(kShape, 1);
  for (const auto& [begin, end] : {std::pair{0, 128}, {128, 256}, {256, 300}})
    for (const auto& [first, last] : {std::pair{0, 33}, {33, 70}})
      epilogue(blocks.view()).apply(blocks.view(), {first, last, begin, end});
  apply(epilogue(whole.view()), whole.view());
  EXPECT_EQ(blocks.values(), wanted);
  EXPECT_EQ(whole.values(), wanted);
  blocks.expect_gaps_untouched();
  whole.expect_gaps_untouched();
}

TEST(Epilogue, NothingLeavesTheResult) {
  EXPECT_FALSE(Epilogue<float>());
  expect_blocks_and_whole([](auto) { return Epilogue<float>(); }, Padded<float>(kShape, 1).values());
}

TEST(Epilogue, Activation) {
  for (const Activation kind : {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh}) {
    Padded<float> x(kShape, 1);
    activation<float>(kind, x.view(), kDrop, x.view(), x.view().whole());
    expect_blocks_and_whole([&](Matrix<float> y) { return Epilogue<float>::activation(kind, kDrop, y); }, x.values());
  }
}

TEST(Epilogue, GradientOfActivation) {
  for (const Activation kind : {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh}) {
    Padded<float> x(kShape, 2), d(kShape, 1);
    activation_backward<float>(kind, x.view(), d.view(), kDrop, d.view(), d.view().whole());
    expect_blocks_and_whole([&](Matrix<float>) { return Epilogue<float>::activation_backward(kind, kDrop, x.view()); },
                            d.values());
  }
}

TEST(Epilogue, Softcap) {
  Padded<float> z(kShape, 1);
  softcap<float>(z.view(), 2.5f);
  expect_blocks_and_whole([](auto) { return Epilogue<float>::softcap(2.5f); }, z.values());
}

}  // namespace
}  // namespace qkv
