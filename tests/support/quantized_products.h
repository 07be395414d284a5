// Products with quantized weights, by the op and by plain loops.
#pragma once

#include "ops/int4_linear.h"
#include "ops/reference/int4_linear_reference.h"
#include "ops/reference/row_linear_reference.h"
#include "ops/row_linear.h"
#include "tests/support/kernels.h"

namespace qkv::testing {

struct QuantizedProducts {
  std::vector<float> x, b, fast, slow;  // [N, in], [out], [N, out], [N, out]
};

// Y = X Wᵀ + b for N random rows. W: an Int8Matrix or Int4Matrix of [out, in].
template <class Weights>
QuantizedProducts quantized_products(const Weights& W, int64_t N, int64_t in, int64_t out) {
  Padded<float> x({N, in}, 1), y({N, out}, 3), plain({N, out}, 4);
  std::vector<float> b = normal<float>(out + 1, 6);
  Arena arena;
  row_linear(x.view(), W, &b[1], y.view(), arena);  // not aligned to a vector
  reference::row_linear(x.view(), W, &b[1], plain.view());
  y.expect_gaps_untouched();
  b.erase(b.begin());
  return {x.values(), b, y.values(), plain.values()};
}

}  // namespace qkv::testing
