// Linear layers with 4-bit weights: equal to plain loops, each row independent of the others, and the best scales.
#include "ops/int4_linear.h"

#include <cmath>

#include "core/to_size.h"
#include "ops/reference/int4_linear_reference.h"
#include "tests/support/epilogue_blocks.h"
#include "tests/support/kernels.h"
#include "tests/support/quantized_products.h"

namespace qkv {
namespace {

using testing::normal;
using testing::Padded;

struct Int4Weights {
  std::vector<float> values;
  std::vector<std::byte> blocks;
  Int4Matrix view;

  Int4Weights(int64_t out, int64_t in) : values(normal<float>(out * in, 7)) {
    view = {nullptr, out, in};
    blocks.resize(to_size(view.bytes()));
    view.blocks = blocks.data();
    quantize_int4(matrix(), blocks.data());
  }
  Matrix<const float> matrix() const { return {values.data(), view.rows, view.cols}; }
};

std::vector<float> products(Matrix<const float> X, const Int4Weights& w, const float* b) {
  Arena arena;
  std::vector<float> y(to_size(X.rows * w.view.rows));
  row_linear(X, w.view, b, {y.data(), X.rows, w.view.rows}, arena);
  return y;
}

// The integer sums are equal. Each group adds three roundings to the sum, whose size the largest partial sum bounds.
TEST(Int4Linear, MatchesPlainLoops) {
  testing::for_each_byte_isa([] {
    for (const int64_t N : {0, 1, 4, 5, 13, 49, 210})
      for (const int64_t in : {64, 192})
        for (const int64_t out : {16, 144, 304}) {
          SCOPED_TRACE(::testing::Message() << N << " x " << in << " to " << out);
          const Int4Weights w(out, in);
          const auto [x, b, fast, slow] = testing::quantized_products(w.view, N, in, out);
          const float groups = static_cast<float>(in / Int4Matrix::kGroup);
          for (int64_t n = 0; n < N; n++) {
            float largest = 0;
            for (int64_t i = 0; i < in; i++) largest = std::max(largest, std::abs(x[to_size(n * in + i)]));
            for (int64_t o = 0; o < out; o++) {
              float sum = std::abs(b[to_size(o)]);
              for (int64_t i = 0; i < in; i += Int4Matrix::kGroup)
                sum += 32 * largest * 8 * std::abs(reference::int4_scale(w.view, o, i));
              ASSERT_NEAR(fast[to_size(n * out + o)], slow[to_size(n * out + o)], 3 * groups * sum * 0x1p-24f);
            }
          }
        }
  });
}

TEST(Int4Linear, ARowDoesNotDependOnOtherRowsOrThreads) {
  constexpr int64_t N = 250, in = 128, out = 304;
  const Int4Weights w(out, in);
  const std::vector<float> x = normal<float>(N * in, 1), b = normal<float>(out, 3);
  testing::for_each_isa([&] {
    const Matrix<const float> X(x.data(), N, in);
    const std::vector<float> all = testing::with_threads(3, [&] { return products(X, w, b.data()); });
    for (const auto& [begin, count] : {std::pair{0, 1}, {5, 2}, {20, 4}, {40, 5}, {7, 17}, {60, 49}, {249, 1}}) {
      const Matrix<const float> part = X.row_range(begin, begin + count);
      const std::vector<float> some = testing::with_threads(1, [&] { return products(part, w, b.data()); });
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + begin * out));
    }
  });
}

TEST(Int4Linear, ARangeOfRowsOfTheWeightGivesItsColumns) {
  constexpr int64_t N = 6, in = 64, out = 96;
  const Int4Weights w(out, in);
  const std::vector<float> x = normal<float>(N * in, 1);
  const Matrix<const float> X(x.data(), N, in);
  const std::vector<float> all = products(X, w, nullptr);
  std::vector<float> some(to_size(N * 48));
  Arena arena;
  row_linear(X, w.view.row_range(32, 80), nullptr, {some.data(), N, 48}, arena);
  for (int64_t n = 0; n < N; n++)
    for (int64_t o = 0; o < 48; o++) EXPECT_EQ(some[to_size(n * 48 + o)], all[to_size(n * out + 32 + o)]);
}

TEST(Int4Linear, NanStaysInItsRow) {
  constexpr int64_t in = 64, out = 16;
  const Int4Weights w(out, in);
  for (const float wrong : {NAN, HUGE_VALF}) {
    std::vector<float> x = normal<float>(20 * in, 1);
    x[in + 3] = wrong;
    const std::vector<float> y = products({x.data(), 20, in}, w, nullptr);
    for (int64_t n = 0; n < 20; n++)
      for (int64_t o = 0; o < out; o++) EXPECT_EQ(std::isnan(y[to_size(n * out + o)]), n == 1) << n;
  }
}

TEST(Int4Linear, AppliesTheEpilogueToEveryBlock) {
  constexpr int64_t in = 64, out = 304;
  const Int4Weights w(out, in);
  for (const int64_t N : {1, 4, 210}) {
    Padded<float> x({N, in}, 1), y({N, out}, 3);
    Arena arena;
    testing::expect_epilogue_of_every_block(y, {N, out}, [&](const Epilogue<float>& epilogue) {
      row_linear(x.view(), w.view, nullptr, y.view(), arena, epilogue);
    });
  }
}

// The squared error of a group is at most that with the scale that makes its largest number −8, which others use.
TEST(Int4Linear, QuantizesBetterThanTheLargestNumberAlone) {
  const Int4Weights w(64, 128);
  double ours = 0, simple = 0;
  for (int64_t o = 0; o < 64; o++)
    for (int64_t g = 0; g < 128; g += Int4Matrix::kGroup) {
      float extreme = 0;
      for (int64_t i = g; i < g + Int4Matrix::kGroup; i++)
        if (std::abs(w.matrix()(o, i)) > std::abs(extreme)) extreme = w.matrix()(o, i);
      const float d = extreme / -8, s = reference::int4_scale(w.view, o, g);
      double error = 0, plain = 0;
      for (int64_t i = g; i < g + Int4Matrix::kGroup; i++) {
        const float x = w.matrix()(o, i);
        error += std::pow(x - s * static_cast<float>(reference::int4_value(w.view, o, i)), 2);
        plain += std::pow(x - d * std::clamp(std::nearbyint(x / d), -8.0f, 7.0f), 2);
      }
      EXPECT_LE(error, plain * (1 + 1e-3)) << "scales have 11 bits";
      ours += error, simple += plain;
    }
  EXPECT_LT(ours, 0.9 * simple);
}

TEST(Int4Linear, ZerosAndLargeWeightsAreKept) {
  std::vector<float> values(16 * 64);
  values[5] = 400000, values[64 + 3] = -1e30f;
  std::vector<std::byte> blocks(Int4Matrix::kBlockBytes);
  const Int4Matrix W{blocks.data(), 16, 64};
  quantize_int4({values.data(), 16, 64}, blocks.data());
  const auto value = [&](int64_t o, int64_t i) {
    return reference::int4_scale(W, o, i) * static_cast<float>(reference::int4_value(W, o, i));
  };
  EXPECT_NEAR(value(0, 5), 400000, 400);
  EXPECT_EQ(value(0, 4), 0);
  EXPECT_EQ(value(2, 9), 0);
  EXPECT_EQ(std::abs(value(1, 3)), 8 * 65504.0f);  // the largest that a float16 scale can express
}

}  // namespace
}  // namespace qkv
