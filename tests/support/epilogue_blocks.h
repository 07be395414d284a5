// Whether a product applies its epilogue to every block of its result, after the block is complete.
#pragma once

#include <gtest/gtest.h>

#include "ops/activation.h"
#include "ops/epilogue.h"
#include "ops/softcap.h"
#include "tests/support/kernels.h"

namespace qkv::testing {

// product(epilogue) assigns `result`. Its epilogue has dropout, so a block must begin at a multiple of 128 columns.
template <class Product>
void expect_epilogue_of_every_block(Padded<float>& result, Shape shape, Product&& product) {
  const Dropout drop{0.25f, 5, 3, 1 << 12};
  Padded<float> found(shape, 11), wanted(shape, 12);
  product(Epilogue<float>::activation(Activation::relu, drop, found.view()));
  activation<float>(Activation::relu, result.view(), drop, wanted.view(), result.view().whole());
  EXPECT_EQ(found.values(), wanted.values());
  found.expect_gaps_untouched();
  softcap<float>(result.view(), 2.5f);
  const std::vector<float> capped = result.values();
  product(Epilogue<float>::softcap(2.5f));  // in place: a block must not be capped twice
  EXPECT_EQ(result.values(), capped);
}

}  // namespace qkv::testing
