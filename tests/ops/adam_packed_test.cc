// Adam with moments in 16 and 8 bits: the codes, the kernel against plain loops, and against Adam in float64.
#include "ops/reference/adam_packed_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::for_each_isa;
using testing::max_error;
using testing::normal;
using testing::with_threads;

// The numbers that 8-bit codes can represent, relative to the largest in a block.
std::vector<float> values_of_m() {
  std::vector<float> values;
  for (uint32_t code = 0; code <= kHighestM; code++)
    values.push_back(reference::decode_m(static_cast<uint8_t>(code), 1));
  return values;
}
std::vector<float> values_of_v() {
  std::vector<float> values;
  for (uint32_t code = 0; code <= kHighestV; code++)
    values.push_back(reference::decode_v(static_cast<uint8_t>(code), 1));
  return values;
}

TEST(MomentCodes, IncreaseByAtMostAnEighthUpToOne) {
  for (const std::vector<float>& values : {values_of_m(), values_of_v()}) {
    EXPECT_EQ(values.front(), 0);
    EXPECT_EQ(values.back(), 1);
    for (size_t c = 1; c < values.size(); c++) EXPECT_GT(values[c], values[c - 1]);
    for (size_t c = 2; c < values.size(); c++) EXPECT_LE(values[c], values[c - 1] * 1.125f);
  }
  EXPECT_EQ(values_of_m()[1], 1.25f * 0x1p-16f);
  EXPECT_EQ(values_of_v()[1], 1.25f * 0x1p-32f);
}

TEST(MomentCodes, AreStableForAllRandomBits) {
  for (const float largest : {1.0f, 0x1p-20f})
    for (const uint32_t random : {0u, 0x7FFFu, 0xFFFFu})
      for (int code = 0; code < 256; code++) {
        const uint8_t c = static_cast<uint8_t>(code);
        EXPECT_EQ(reference::encode_m(reference::decode_m(c, largest), largest, random), c);
        EXPECT_EQ(reference::encode_v(reference::decode_v(c, largest), largest, random), c);
      }
}

// Over all values of the random bits, which are as many as the distinguishable fractions of a step between codes.
TEST(MomentCodes, PreserveTheMean) {
  for (const float x : {0.9f, 0.3f, 0.0123f, 1.7e-4f}) {
    double m = 0, v = 0, b = 0;
    for (uint32_t random = 0; random < 0x10000; random++) {
      m += reference::decode_m(reference::encode_m(-x, 1.5f, random), 1.5f);
      v += reference::decode_v(reference::encode_v(x, 1.5f, random), 1.5f);
      b += reference::encode_bfloat16(x, random);
    }
    const double tolerance =
        0x1p-3 * 0x1p-16 + 0x1p-23;  // one of a step, and one of dividing and multiplying by the scale
    EXPECT_NEAR(m * 0x1p-16, -x, tolerance * x);
    EXPECT_NEAR(v * 0x1p-16, x, tolerance * x);
    EXPECT_NEAR(b * 0x1p-16, x, 0x1p-24 * x);  // exact except for the conversion of the sum
  }
}

TEST(MomentCodes, NeverRoundAPositiveSquareToZero) {
  for (const float v : {1e-37f, 1e-20f, 1e-12f}) EXPECT_EQ(reference::encode_v(v, 1, 0), 1);
  EXPECT_EQ(reference::encode_v(0, 1, 0xFFFF), 0);
  EXPECT_EQ(reference::encode_m(1e-6f, 1, 0xFFFF), 0);
}

// Means of 2^16 uniform numbers of variance 1/12, and of products of two such: five deviations.
TEST(MomentCodes, RandomBitsAreUniformAndTheirHalvesIndependent) {
  double low = 0, high = 0, both = 0, next = 0, before = 0;
  for (int64_t block = 0; block < 256; block++) {
    const uint32_t key = rounding_key(1, 7, block);
    for (uint32_t i = 0; i < 256; i++) {
      const uint32_t bits = rounding_bits(key, i);
      const double a = (bits & 0xFFFF) * 0x1p-16 - 0.5, b = (bits >> 16) * 0x1p-16 - 0.5;
      low += a, high += b, both += a * b, next += a * before;
      before = a;
    }
  }
  EXPECT_LE(std::abs(low) / 65536, 5 * std::sqrt(1.0 / 12) / 256);
  EXPECT_LE(std::abs(high) / 65536, 5 * std::sqrt(1.0 / 12) / 256);
  EXPECT_LE(std::abs(both) / 65536, 5 * (1.0 / 12) / 256);
  EXPECT_LE(std::abs(next) / 65536, 5 * (1.0 / 12) / 256);
}

constexpr size_t kSizes[] = {0, 1, 255, 256, 257, 16384, 40001};

// Parameters with packed moments, initially zero, as views into vectors of whole blocks.
struct Arrays {
  std::vector<float> w, gradient, average;
  std::vector<bfloat16> m16, v16;
  std::vector<uint8_t> m8, v8;
  std::vector<float> m_scale, v_scale;

  explicit Arrays(size_t n)
      : w(normal<float>(static_cast<int64_t>(n), 1)), gradient(n), average(normal<float>(static_cast<int64_t>(n), 3)) {
    const size_t blocks = (n + kMomentBlock - 1) / kMomentBlock, padded = blocks * kMomentBlock;
    m16.resize(padded), v16.resize(padded), m8.resize(padded), v8.resize(padded);
    m_scale.resize(blocks), v_scale.resize(blocks);
  }
  // The gradients of a step differ in magnitude by up to 1000 times within a block.
  void draw(int64_t step) {
    gradient = normal<float>(std::ssize(gradient), static_cast<uint64_t>(100 + step));
    for (size_t i = 0; i < gradient.size(); i++) gradient[i] *= std::pow(10.0f, -static_cast<float>(i % 4));
  }
  void get(Bfloat16Moments& moments) { moments = {m16, v16}; }
  void get(Int8Moments& moments) { moments = {m8, v8, m_scale, v_scale}; }
  template <class Moments>
  std::vector<float> unpacked(bool second) {
    Moments moments;
    get(moments);
    std::vector<float> values;
    for (size_t i = 0; i < w.size(); i++) {
      float m = 0, v = 0;
      reference::unpack(moments, i / kMomentBlock, i, m, v);
      values.push_back(second ? v : m);
    }
    return values;
  }
};

AdamStep sample_step(int64_t step) {
  return {.learning_rate = 1e-3,
          .weight_decay = 0.01,
          .gradient_scale = 0.5,
          .step = step,
          .average_decay = 0.9,
          .seed = 5};
}

template <class Moments>
void update(Arrays& a, int64_t step, bool plain = false) {
  Moments moments;
  a.get(moments);
  if (plain)
    reference::adam_update_packed(sample_step(step), a.w, a.gradient, moments, a.average);
  else
    adam_update(sample_step(step), a.w, a.gradient, moments, a.average);
}

// Counts elements whose stored m or v differs.
template <class Moments>
int64_t differences(Arrays& a, Arrays& b, double spacing) {
  int64_t count = 0;
  for (const bool second : {false, true}) {
    const std::vector<float> x = a.unpacked<Moments>(second), y = b.unpacked<Moments>(second);
    for (size_t i = 0; i < x.size(); i++) {
      const double difference = std::abs(static_cast<double>(x[i]) - y[i]);
      count += difference > 4 * 0x1p-24 * std::abs(y[i]);  // more than the scale's rounding
      EXPECT_LE(difference, (spacing + 4 * 0x1p-24) * std::max(std::abs(x[i]), std::abs(y[i]))) << i;
    }
  }
  return count;
}

// Starting from the same state, m and v before rounding differ by about four units in the last place in either
// direction. The random bits separate them if the sum with the lowest `dropped` bits carries for one and not for the
// other: for 8 of 2^dropped numbers, by one code. Allows five standard deviations of that count, and a few more if it
// is small. Weights below 8 are rounded twice on each side.
template <class Moments>
void expect_like_reference(double spacing, int dropped) {
  for_each_isa([&] {
    for (const size_t n : kSizes) {
      Arrays fast(n), plain(n);
      const double parted = std::ldexp(2.0 * 8 * static_cast<double>(n), -dropped);
      for (int64_t step = 1; step <= 3; step++) {
        fast.draw(step), plain.draw(step);
        update<Moments>(fast, step);
        update<Moments>(plain, step, true);
        EXPECT_EQ(fast.gradient, std::vector<float>(n));
        EXPECT_LE(differences<Moments>(fast, plain, spacing), parted + 5 * std::sqrt(parted) + 4);
        EXPECT_LE(max_error(fast.w, plain.w), 4 * 0x1p-24 * 8);
        EXPECT_LE(max_error(fast.average, plain.average), 4 * 0x1p-24 * 8);
        const Arrays same = plain;  // both start the next step from the same state
        fast = same;
      }
    }
  });
}

TEST(AdamBfloat16, KernelAgreesWithTheReference) { expect_like_reference<Bfloat16Moments>(0x1p-7, 16); }
TEST(AdamInt8, KernelAgreesWithTheReference) { expect_like_reference<Int8Moments>(0x1p-3, kCodeShift); }

template <class Moments>
void expect_same_for_any_threads() {
  for_each_isa([] {
    const auto run = [] {
      Arrays a(40001);
      a.draw(1);
      update<Moments>(a, 1);
      a.draw(2);
      update<Moments>(a, 2);
      return std::tuple(a.w, a.average, a.template unpacked<Moments>(false), a.template unpacked<Moments>(true));
    };
    EXPECT_EQ(with_threads(1, run), with_threads(3, run));
  });
}

TEST(AdamBfloat16, DoesNotDependOnTheNumberOfThreads) { expect_same_for_any_threads<Bfloat16Moments>(); }
TEST(AdamInt8, DoesNotDependOnTheNumberOfThreads) { expect_same_for_any_threads<Int8Moments>(); }

// After many steps, the means of the moments equal those of Adam in float64 on average. A step changes v by a fraction
// (1 − β2) |g² / v − 1| of itself, at most (1 − β2) on average for normal g. Rounding between codes that are `spacing`
// v apart adds a variance of at most (1 − β2) spacing v² per step, of which 1 / (1 − β2²) steps remain: spacing / 2 v².
// For m / √v, whose codes are as dense, it is less. Allows five standard deviations of the mean of n of them, and the
// corresponding fraction of both while 0.98 of v has not yet accumulated.
template <class Moments>
void expect_mean_of_exact(double spacing) {
  constexpr size_t n = 16384;
  constexpr int64_t kSteps = 300;
  Arrays packed(n);
  std::vector<double> w(n), m(n), v(n);
  for (int64_t step = 1; step <= kSteps; step++) {
    packed.draw(step);
    std::vector<double> g(packed.gradient.begin(), packed.gradient.end());
    AdamStep s = sample_step(step);
    s.weight_decay = 0;
    reference::adam_update<double>(s, w, g, m, v);
    Moments moments;
    packed.get(moments);
    adam_update(s, packed.w, packed.gradient, moments);
  }
  const std::vector<float> packed_m = packed.unpacked<Moments>(false), packed_v = packed.unpacked<Moments>(true);
  double ratio = 0, difference = 0;
  for (size_t i = 0; i < n; i++) {
    ratio += packed_v[i] / v[i];
    difference += (packed_m[i] - m[i]) / std::sqrt(v[i]);
  }
  const double deviation = std::sqrt(spacing / 2 / n);
  EXPECT_NEAR(ratio / n, 1, 5 * deviation);
  EXPECT_NEAR(difference / n, 0, 5 * deviation);
}

TEST(AdamBfloat16, MomentsHaveTheMeanOfFloat64Moments) { expect_mean_of_exact<Bfloat16Moments>(0x1p-7); }
TEST(AdamInt8, MomentsHaveTheMeanOfFloat64Moments) { expect_mean_of_exact<Int8Moments>(0x1p-3); }

}  // namespace
}  // namespace qkv
