// Logits of chosen tokens: kernel against reference, gradients against finite differences.
#include "ops/gathered_logits.h"

#include "ops/reference/gathered_logits_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::for_each_isa;
using testing::odd_shapes;
using testing::Padded;
using testing::Shape;
using testing::with_threads;

// Enough tokens of a row that the worst sum of the plain loops is not exact by luck.
constexpr int64_t V = 61, K = 30;

std::vector<int32_t> random_ids(int64_t count) {
  Random random(3, Stream::test);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; i++) ids.push_back(static_cast<int32_t>(random.below(V)));
  return ids;
}

// s, dh and dE, concatenated; dE is added to what is there.
template <class Real, class Forward, class Backward>
std::vector<Real> results(Shape shape, Forward&& forward, Backward&& backward) {
  std::vector<int32_t> ids = random_ids(shape.rows * K);
  const Matrix<const int32_t> chosen(ids.data(), shape.rows, K);
  Padded<Real> h(shape, 1), E({V, shape.cols}, 2), ds({shape.rows, K}, 3), s({shape.rows, K}, 4), dh(shape, 5),
      dE({V, shape.cols}, 6);
  forward(h.view(), E.view(), chosen, s.view());
  Arena arena;
  backward(h.view(), E.view(), chosen, ds.view(), dh.view(), dE.view(), arena);
  std::vector<Real> all;
  for (Padded<Real>* m : {&s, &dh, &dE}) {
    m->expect_gaps_untouched();
    for (const Real value : m->values()) all.push_back(value);
  }
  return all;
}

template <class Real>
std::vector<Real> plain(Shape shape) {
  return results<Real>(shape, reference::gathered_logits<Real>,
                       [](auto h, auto E, auto ids, auto ds, auto dh, auto dE, Arena&) {
                         reference::gathered_logits_backward<Real>(h, E, ids, ds, dh, dE);
                       });
}

std::vector<float> fast(Shape shape) {
  return results<float>(shape, gathered_logits<float>, gathered_logits_backward<float>);
}

TEST(GatheredLogits, KernelIsAsAccurateAsTheReference) {
  for_each_isa([] {
    for (const Shape shape : odd_shapes())
      testing::expect_as_accurate(fast(shape), plain<float>(shape), plain<double>(shape), 2);
  });
}

// A table of many ranges; rows of dE are added to in order, so the bits are those of the plain loops.
TEST(GatheredLogits, RangesOfALargeVocabularyKeepTheOrderOfTheSums) {
  constexpr int64_t kRows = 50'000, N = 3000, d = 1;
  Random random(5, Stream::test);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < N * K; i++) ids.push_back(static_cast<int32_t>(random.below(i % 2 ? kRows : 10)));
  ids.back() = kRows - 1;
  const Matrix<const int32_t> chosen(ids.data(), N, K);
  std::vector<float> h = testing::normal<float>(N * d, 1), E(kRows * d), ds(N * K, 1), dh(N * d), dE(kRows * d),
                     plain(kRows * d);
  Arena arena;
  const auto matrix = [](auto& values, int64_t cols) { return Matrix(values.data(), std::ssize(values) / cols, cols); };
  gathered_logits_backward<float>(matrix(h, d), matrix(E, d), chosen, matrix(ds, K), matrix(dh, d), matrix(dE, d),
                                  arena);
  reference::gathered_logits_backward<float>(matrix(h, d), matrix(E, d), chosen, matrix(ds, K), matrix(dh, d),
                                             matrix(plain, d));
  EXPECT_EQ(dE, plain);
}

TEST(GatheredLogits, DoesNotDependOnTheNumberOfThreads) {
  const Shape shape{1000, 50};
  EXPECT_EQ(with_threads(1, [&] { return fast(shape); }), with_threads(3, [&] { return fast(shape); }));
}

TEST(GatheredLogits, GradientMatchesFiniteDifferences) {
  constexpr int64_t N = 4, d = 5;
  std::vector<int32_t> ids = random_ids(N * K);
  const Matrix<const int32_t> chosen(ids.data(), N, K);
  std::vector<double> h = testing::normal<double>(N * d, 1), E = testing::normal<double>(V * d, 2), dh(N * d),
                      dE(V * d);
  const std::vector<double> ds = testing::normal<double>(N * K, 3);
  const auto matrix = [](auto& values, int64_t cols) { return Matrix(values.data(), std::ssize(values) / cols, cols); };
  Arena arena;
  gathered_logits_backward<double>(matrix(h, d), matrix(E, d), chosen, matrix(ds, K), matrix(dh, d), matrix(dE, d),
                                   arena);
  const auto value = [&] {
    std::vector<double> s(N * K);
    gathered_logits<double>(matrix(h, d), matrix(E, d), chosen, matrix(s, K));
    return testing::dot(s, ds);
  };
  testing::expect_gradient(h, dh, value);
  testing::expect_gradient(E, dE, value);
}

}  // namespace
}  // namespace qkv
