// Linear layers for inference: as accurate as plain loops, and each row independent of the others.
#include "ops/row_linear.h"

#include <numeric>

#include "core/random.h"
#include "core/to_size.h"
#include "ops/reference/linear_reference.h"
#include "ops/reference/row_linear_reference.h"
#include "tests/support/epilogue_blocks.h"
#include "tests/support/kernels.h"
#include "tests/support/quantized_products.h"

namespace qkv {
namespace {

using testing::normal;
using testing::Padded;

// An int8 matrix of any integers from −128 to 127, with gaps between the rows.
struct Weights {
  static constexpr int64_t kGap = 8;
  std::vector<int8_t> values;
  std::vector<float> scale;
  std::vector<int32_t> sums;
  Int8Matrix view;

  Weights(int64_t out, int64_t in) : values(to_size(out * (in + kGap))), scale(to_size(out)), sums(scale.size()) {
    Random random(7, Stream::sampling);
    for (int64_t o = 0; o < out; o++) {
      scale[to_size(o)] = static_cast<float>(0.001 + random.uniform() / 50);
      for (int64_t i = 0; i < in; i++) {
        int8_t& value = values[to_size(o * (in + kGap) + i)];
        value = static_cast<int8_t>(static_cast<int64_t>(random.below(256)) - 128);
        sums[to_size(o)] += value;
      }
    }
    view = {{values.data(), out, in, in + kGap}, scale.data(), sums.data()};
  }
};

constexpr int64_t kRows[] = {0, 1, 4, 5, 17, 49, 210};

TEST(RowLinear, FloatsAreAsAccurateAsPlainLoops) {
  testing::for_each_isa([] {
    for (const int64_t N : kRows)
      for (const int64_t in : {1, 6, 64, 129})
        for (const int64_t out : {1, 9, 131}) {
          SCOPED_TRACE(::testing::Message() << N << " x " << in << " to " << out);
          const auto run_row_linear = [&]<class Real>(Real, auto&& product) {
            Padded<Real> x({N, in}, 1), w({out, in}, 2), y({N, out}, 3);
            const std::vector<Real> b = normal<Real>(out + 1, 6);
            product(Matrix<const Real>(x.view()), Matrix<const Real>(w.view()), &b[1], y.view());
            y.expect_gaps_untouched();
            return y.values();
          };
          Arena arena;
          const auto loops = [](auto... args) { reference::linear(args...); };
          const auto kernel = [&](auto... args) { row_linear<float>(args..., arena); };
          testing::expect_as_accurate(run_row_linear(float(), kernel), run_row_linear(float(), loops),
                                      run_row_linear(double(), loops), 2);
        }
  });
}

// The integer sums are equal and three roundings follow. The scale of a row is equal as well.
TEST(RowLinear, Int8ProductsMatchPlainLoops) {
  testing::for_each_byte_isa([] {
    for (const int64_t N : kRows)
      for (const int64_t in : {4, 64, 132})
        for (const int64_t out : {1, 9, 131}) {
          SCOPED_TRACE(::testing::Message() << N << " x " << in << " to " << out);
          const Weights w(out, in);
          const auto [x, b, fast, slow] = testing::quantized_products(w.view, N, in, out);
          float largest = 4;  // of the bias
          for (const float value : slow) largest = std::max(largest, std::abs(value));
          for (size_t i = 0; i < fast.size(); i++) ASSERT_NEAR(fast[i], slow[i], 4 * 0x1p-24 * (largest + 4));
        }
  });
}

TEST(RowLinear, SumsRowsOfBytes) {
  testing::for_each_isa([] {
    for (const int64_t cols : {0, 1, 4, 15, 16, 17, 132}) {
      const int64_t rows = 70, stride = cols + 3;
      std::vector<int8_t> values(to_size(rows * stride));
      for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<int8_t>(i * 37 % 256 - 128);
      const Matrix<const int8_t> W(values.data(), rows, cols, stride);
      std::vector<int32_t> sums(to_size(rows), -1);
      sum_rows(W, sums.data());
      for (int64_t r = 0; r < rows; r++)
        EXPECT_EQ(sums[to_size(r)], std::accumulate(W.row(r), W.row(r) + cols, 0)) << cols << " columns, row " << r;
    }
  });
}

TEST(RowLinear, ARowDoesNotDependOnOtherRows) {
  constexpr int64_t N = 150, in = 132, out = 300;
  const Weights bytes(out, in);
  const std::vector<float> x = normal<float>(N * in, 1), w = normal<float>(out * in, 2), b = normal<float>(out, 3);
  const auto products = [&](int64_t begin, int64_t end) {
    Arena arena;
    std::vector<float> y(to_size((end - begin) * out)), q(y.size());
    const Matrix<const float> X(x.data() + begin * in, end - begin, in);
    row_linear<float>(X, Matrix<const float>(w.data(), out, in), b.data(), {y.data(), X.rows, out}, arena);
    row_linear(X, bytes.view, b.data(), {q.data(), X.rows, out}, arena);
    y.insert(y.end(), q.begin(), q.end());
    return y;
  };
  testing::for_each_isa([&] {
    const std::vector<float> all = testing::with_threads(3, [&] { return products(0, N); });
    for (const auto& [begin, count] : {std::pair{0, 1}, {5, 2}, {20, 4}, {40, 5}, {7, 17}, {60, 49}, {149, 1}}) {
      const std::vector<float> some = testing::with_threads(1, [&] { return products(begin, begin + count); });
      const auto half = static_cast<std::ptrdiff_t>(count * out);
      EXPECT_TRUE(std::equal(some.begin(), some.begin() + half, all.begin() + begin * out));
      EXPECT_TRUE(std::equal(some.begin() + half, some.end(), all.begin() + (N + begin) * out));
    }
  });
}

TEST(RowLinear, ProductsOfRowsHaveTheBitsOfTheDiagonal) {
  testing::for_each_isa([] {
    for (const int64_t N : kRows) {
      constexpr int64_t in = 37;
      const std::vector<float> x = normal<float>(N * in, 1), w = normal<float>(N * in, 2);
      const Matrix<const float> X(x.data(), N, in), W(w.data(), N, in);
      std::vector<float> y(to_size(N)), Y(to_size(N * N));
      Arena arena;
      row_products(X, W, y.data(), arena);
      row_linear<float>(X, W, nullptr, {Y.data(), N, N}, arena);
      for (int64_t n = 0; n < N; n++) EXPECT_EQ(y[to_size(n)], Y[to_size(n * N + n)]) << n << " of " << N;
      EXPECT_EQ(arena.used(), 0U);
    }
  });
}

TEST(RowLinear, NanStaysInItsRow) {
  constexpr int64_t in = 20, out = 9;
  const Weights bytes(out, in);
  for (const int64_t N : {3, 40}) {
    std::vector<float> x = normal<float>(N * in, 1), y(to_size(N * out));
    x[in + 3] = NAN;
    Arena arena;
    row_linear({x.data(), N, in}, bytes.view, nullptr, {y.data(), N, out}, arena);
    for (int64_t n = 0; n < N; n++)
      for (int64_t o = 0; o < out; o++) EXPECT_EQ(std::isnan(y[to_size(n * out + o)]), n == 1) << n;
  }
}

TEST(RowLinear, AppliesTheEpilogueToEveryBlock) {
  constexpr int64_t in = 8, out = 300;
  for (const int64_t N : {1, 4, 210}) {
    Padded<float> x({N, in}, 1), w({out, in}, 2), y({N, out}, 3);
    Arena arena;
    testing::expect_epilogue_of_every_block(y, {N, out}, [&](const Epilogue<float>& epilogue) {
      row_linear<float>(x.view(), w.view(), nullptr, y.view(), arena, epilogue);
    });
    const Weights bytes(out, in);
    testing::expect_epilogue_of_every_block(y, {N, out}, [&](const Epilogue<float>& epilogue) {
      row_linear(x.view(), bytes.view, nullptr, y.view(), arena, epilogue);
    });
  }
}

}  // namespace
}  // namespace qkv
