#include "core/float16.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qkv {
namespace {

TEST(Float16, HasTheValueOfItsBits) {
  for (int bits = 0; bits < 1 << 16; bits++) {
    float16 half;
    half.bits = static_cast<uint16_t>(bits);
    const float found = half;
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    EXPECT_EQ(std::signbit(found), bits >= 1 << 15) << bits;
    if (exponent == 31 && mantissa > 0) {
      EXPECT_TRUE(std::isnan(found)) << bits;
    } else if (exponent == 31) {
      EXPECT_TRUE(std::isinf(found)) << bits;
    } else {
      const int digits = exponent == 0 ? mantissa : mantissa + 1024;
      EXPECT_EQ(std::abs(found), std::ldexp(static_cast<float>(digits), std::max(exponent, 1) - 25)) << bits;
    }
  }
}

}  // namespace
}  // namespace qkv
