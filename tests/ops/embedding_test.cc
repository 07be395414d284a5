// Token embeddings and positional encoding: kernel against reference and formula.
#include "ops/embedding.h"

#include <tuple>

#include "core/to_size.h"
#include "ops/reference/embedding_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::for_each_isa;
using testing::odd_shapes;
using testing::Padded;
using testing::Shape;

constexpr int64_t V = 7, kPositions = 70;
constexpr float kScale = 22.6274169979695f;  // √512

std::vector<int32_t> ids_for(int64_t N, int64_t below) {
  Random random(3, Stream::test);
  std::vector<int32_t> ids;
  for (int64_t n = 0; n < N; n++) ids.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(below))));
  return ids;
}

TEST(Embedding, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const Shape shape : odd_shapes()) {
      const std::vector<int32_t> ids = ids_for(shape.rows, V), positions = ids_for(shape.rows, kPositions);
      const auto plain = [&]<class Real>(Real scale) {
        Padded<Real> E({V, shape.cols}, 1), P({kPositions, shape.cols}, 2), y(shape, 3), dE({V, shape.cols}, 4);
        reference::embedding<Real>(E.view(), ids, scale, P.view(), positions, y.view());
        reference::embedding_backward<Real>(y.view(), ids, scale, dE.view());
        return std::pair(y.values(), dE.values());
      };
      const auto [exact_y, exact_dE] = plain(static_cast<double>(kScale));
      const auto [plain_y, plain_dE] = plain(kScale);
      Padded<float> E({V, shape.cols}, 1), P({kPositions, shape.cols}, 2), y(shape, 3), dE({V, shape.cols}, 4);
      embedding<float>(E.view(), ids, kScale, P.view(), positions, y.view());
      embedding_backward<float>(y.view(), ids, kScale, dE.view());
      y.expect_gaps_untouched();
      dE.expect_gaps_untouched();
      testing::expect_as_accurate(y.values(), plain_y, exact_y, 2);
      testing::expect_as_accurate(dE.values(), plain_dE, exact_dE, 3);
    }
  });
}

TEST(Embedding, IsAddedToEachRow) {
  for_each_isa([] {
    for (const Shape shape : odd_shapes()) {
      const std::vector<int32_t> ids = ids_for(shape.rows, V);
      Padded<float> E({V, shape.cols}, 1), y(shape, 2), expected(shape, 2);
      reference::add_embedding<float>(E.view(), ids, expected.view());
      add_embedding<float>(E.view(), ids, y.view());
      y.expect_gaps_untouched();
      EXPECT_EQ(y.values(), expected.values());  // one rounding in any kernel
    }
  });
}

TEST(Embedding, FirstTokensAreReplaced) {
  const std::vector<int32_t> positions = {0, 1, 0};
  const std::vector<float> row = {7, 8};
  Padded<float> y({3, 2}, {1, 2, 3, 4, 5, 6});
  set_first_tokens<float>(positions, row.data(), y.view());
  EXPECT_EQ(y.values(), (std::vector<float>{7, 8, 3, 4, 7, 8}));
  set_first_tokens<float>(positions, nullptr, y.view());
  EXPECT_EQ(y.values(), (std::vector<float>{0, 0, 3, 4, 0, 0}));
  y.expect_gaps_untouched();
}

TEST(Embedding, GradientMatchesFiniteDifferences) {
  const std::vector<int32_t> ids = {2, 0, 2, 6}, positions = {0, 1, 2, 0};
  std::vector<double> table = testing::normal<double>(V * 5, 1), P = testing::normal<double>(15, 2), dE(V * 5);
  const std::vector<double> dy = testing::normal<double>(20, 3);
  embedding_backward<double>(Matrix<const double>(dy.data(), 4, 5), ids, 3.0, Matrix<double>(dE.data(), V, 5));
  testing::expect_gradient(table, dE, [&] {
    std::vector<double> y(20);
    embedding<double>(Matrix<double>(table.data(), V, 5), ids, 3.0, Matrix<double>(P.data(), 3, 5), positions,
                      Matrix<double>(y.data(), 4, 5));
    return testing::dot(y, dy);
  });
}

TEST(Embedding, GradientDoesNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    const auto run = [] {
      const std::vector<int32_t> ids = ids_for(300, V);
      Padded<float> dy({300, 300}, 1), dE({V, 300}, 2);
      embedding_backward<float>(dy.view(), ids, kScale, dE.view());
      return dE.values();
    };
    EXPECT_EQ(testing::with_threads(1, run), testing::with_threads(3, run));
  });
}

// Within two roundings of the formula evaluated in long double: the rate, and its product with p < 100.
TEST(SinusoidalPositions, AreSinesAndCosinesOfDecreasingFrequency) {
  for (const int64_t d : {1, 6, 7, 64}) {
    std::vector<double> P(to_size(100 * d));
    std::vector<float> P_float(P.size());
    sinusoidal_positions(Positions::interleaved, Matrix<double>(P.data(), 100, d));
    sinusoidal_positions(Positions::interleaved, Matrix<float>(P_float.data(), 100, d));
    for (int64_t p = 0; p < 100; p++)
      for (int64_t c = 0; c < d; c++) {
        const long double angle = p / std::pow(10000.0L, 2.0L * (c / 2) / d);
        const long double expected = c % 2 ? std::cos(angle) : std::sin(angle);
        EXPECT_NEAR(P[to_size(p * d + c)], static_cast<double>(expected), 1e-13);
      }
    EXPECT_LE(testing::max_error(P_float, P), 0x1p-24);
  }
}

TEST(SinusoidalPositions, InHalvesHaveSinesFirst) {
  constexpr int64_t d = 10, h = d / 2;
  for (const auto& [kind, closed, first] : {std::tuple{Positions::halves, false, 0},
                                            {Positions::closed_halves, true, 1},
                                            {Positions::second_halves, true, 2}}) {
    std::vector<double> P(to_size(100 * d));
    sinusoidal_positions(kind, Matrix<double>(P.data(), 100, d));
    for (int64_t p = 0; p < 100; p++)
      for (int64_t j = 0; j < h; j++) {
        const long double exponent = closed ? static_cast<long double>(j) / (h - 1) : 2.0L * j / d;
        const long double angle = (p + first) * std::pow(10000.0L, -exponent);
        EXPECT_NEAR(P[to_size(p * d + j)], static_cast<double>(std::sin(angle)), 1e-13);
        EXPECT_NEAR(P[to_size(p * d + h + j)], static_cast<double>(std::cos(angle)), 1e-13);
      }
  }
}

}  // namespace
}  // namespace qkv
