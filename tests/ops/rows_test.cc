// Rows that are set, copied, gathered, scattered and scaled: against plain loops, bit by bit, on any number of threads.
#include "ops/rows.h"

#include <numeric>

#include "ops/reference/rows_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::odd_shapes;
using testing::Padded;
using testing::Shape;

// Calls f(rows, shape) for matrices of several shapes and, for each, rows of a matrix of 70 in random order.
template <class F>
void for_each_case(bool may_repeat, F&& f) {
  for (const int threads : {1, 3})
    for (const Shape shape : odd_shapes()) {
      SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << ", " << threads << " threads");
      Random random(7, Stream::test);
      std::vector<int32_t> rows(70);
      std::iota(rows.begin(), rows.end(), 0);
      random.shuffle(rows);
      rows.resize(to_size(shape.rows));
      if (may_repeat)
        for (int32_t& row : rows) row /= 2;
      testing::with_threads(threads, [&] { return f(rows, shape), 0; });
    }
}

// Runs the op and the plain loops on copies of a matrix, and expects the same bits.
template <class Op, class Reference>
void expect_same(Shape shape, Op&& op, Reference&& reference) {
  Padded<float> found(shape, 1), wanted(shape, 1);
  op(found.view());
  reference(wanted.view());
  found.expect_gaps_untouched();
  EXPECT_EQ(found.values(), wanted.values());
}

TEST(Rows, FillAndScale) {
  for_each_case(false, [](const auto&, Shape shape) {
    expect_same(
        shape, [](auto m) { fill<float>(m, 2.5f); }, [](auto m) { reference::fill(m, 2.5f); });
    expect_same(
        shape, [](auto m) { scale<float>(m, 0.3f); }, [](auto m) { reference::scale(m, 0.3f); });
  });
}

TEST(Rows, Copy) {
  for_each_case(false, [](const auto&, Shape shape) {
    Padded<float> from(shape, 2);
    const Matrix<const float> x = from.view();
    expect_same(
        shape, [&](auto m) { copy_rows<float>(x, m); }, [&](auto m) { reference::copy_rows(x, m); });
  });
}

TEST(Rows, Gather) {
  for_each_case(true, [](const std::vector<int32_t>& rows, Shape shape) {
    Padded<float> from({70, shape.cols}, 2);
    const Matrix<const float> x = from.view();
    expect_same(
        shape, [&](auto m) { gather_rows<float>(x, rows, m); }, [&](auto m) { reference::gather_rows(x, {rows}, m); });
  });
}

TEST(Rows, GatherOfIntegers) {
  const std::vector<int8_t> bytes = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> rows = {2, 0, 2};
  std::vector<int8_t> found(6);
  gather_rows(Matrix<const int8_t>(bytes.data(), 3, 2), rows, Matrix<int8_t>(found.data(), 3, 2));
  EXPECT_EQ(found, (std::vector<int8_t>{5, 6, 1, 2, 5, 6}));
}

TEST(Rows, ScatterKeepsTheLastOfRowsThatRepeat) {
  for_each_case(true, [](const std::vector<int32_t>& rows, Shape shape) {
    Padded<float> from(shape, 2);
    const Matrix<const float> x = from.view();
    expect_same(
        {70, shape.cols}, [&](auto m) { scatter_rows<float>(x, rows, m); },
        [&](auto m) { reference::scatter_rows(x, {rows}, m); });
  });
}

TEST(Rows, ScatterAddSumsRowsThatRepeatInOrder) {
  for_each_case(true, [](const std::vector<int32_t>& rows, Shape shape) {
    Padded<float> from(shape, 2);
    const Matrix<const float> x = from.view();
    expect_same(
        {70, shape.cols}, [&](auto m) { scatter_add_rows<float>(x, rows, m); },
        [&](auto m) { reference::scatter_add_rows(x, {rows}, m); });
  });
}

TEST(Rows, FindsThoseThatAreNotFinite) {
  for (const int threads : {1, 3}) {
    Padded<float> m({65, 300}, 1);
    m.view()(3, 0) = std::numeric_limits<float>::infinity();
    m.view()(3, 7) = std::numeric_limits<float>::quiet_NaN();
    m.view()(64, 299) = -std::numeric_limits<float>::infinity();
    const Matrix<const float> x = m.view();
    EXPECT_EQ(testing::with_threads(threads, [&] { return rows_not_finite(x); }), (std::vector<int64_t>{3, 64}));
    EXPECT_TRUE(rows_not_finite(x.row_range(4, 64)).empty());
  }
}

}  // namespace
}  // namespace qkv
