// Rows, embeddings and positions of the CUDA plugin against the references.
#include "ops/rows.h"

#include "ops/distance_bias.h"
#include "ops/embedding.h"
#include "ops/reference/distance_bias_reference.h"
#include "ops/reference/embedding_reference.h"
#include "ops/reference/rotary_reference.h"
#include "ops/reference/rows_reference.h"
#include "ops/rotary.h"
#include "tests/cuda/device_matrix.h"

namespace qkv {
namespace {

using testing::device_shapes;
using testing::DeviceMatrix;
using testing::for_each_element;
using testing::Shape;
using testing::tolerance_of;

// n numbers of [0, below), each several times.
std::vector<int32_t> indices(int64_t n, int64_t below) {
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < n; i++) rows.push_back(static_cast<int32_t>(i * i * 7 % below));
  return rows;
}

TEST(CudaRows, AreFilledCopiedAndScaled) {
  const testing::CudaDevice device;
  for (const Shape shape : device_shapes())
    for_each_element([&]<class T>(T) {
      Arena arena;
      DeviceMatrix<T> a(arena, shape, 1), b(arena, shape, 2), c(arena, shape, 3);
      fill<Device<T>>(a.view(), 0.5f);
      reference::fill(a.host(), 0.5);
      a.expect_host(0);
      copy_rows<Device<T>>(b.view(), c.view());
      reference::copy_rows<double>(b.host(), c.host());
      c.expect_host(0);
      scale<Device<T>>(b.view(), 0.3f);
      reference::scale(b.host(), static_cast<double>(0.3f));
      b.expect_host(tolerance_of<T>());
    });
}

TEST(CudaRows, AreGatheredAndScattered) {
  const testing::CudaDevice device;
  for (const Shape shape : device_shapes())
    for_each_element([&]<class T>(T) {
      const Shape table = {11, shape.cols};
      const std::vector<int32_t> rows = indices(shape.rows, table.rows);
      Arena arena;
      DeviceMatrix<T> from(arena, table, 1), to(arena, shape, 2), back(arena, table, 3), sum(arena, table, 4);
      gather_rows<Device<T>>(from.view(), rows, to.view());
      reference::gather_rows<double>(from.host(), rows, to.host());
      to.expect_host(0);
      DeviceMatrix<T> source(arena, shape, 5);
      scatter_rows<Device<T>>(source.view(), rows, back.view());
      reference::scatter_rows<double>(source.host(), rows, back.host());
      back.expect_host(0);
      scatter_add_rows<Device<T>>(source.view(), rows, sum.view());
      reference::scatter_add_rows<double>(source.host(), rows, sum.host());
      sum.expect_host(tolerance_of<T>(shape.rows));
    });
}

TEST(CudaRows, ThatAreNotFiniteAreFound) {
  const testing::CudaDevice device;
  for_each_element([&]<class T>(T) {
    Arena arena;
    std::vector<double> x = testing::representable<T>(70 * 40, 1);
    x[0 * 40 + 39] = std::numeric_limits<double>::infinity(), x[69 * 40] = std::nan("");
    const DeviceMatrix<T> m(arena, {70, 40}, x);
    EXPECT_EQ(rows_not_finite<Device<T>>(m.view()), (std::vector<int64_t>{0, 69}));
  });
}

TEST(CudaEmbedding, IsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const Shape shape : device_shapes())
    for_each_element([&]<class T>(T) {
      const Shape table = {13, shape.cols};
      const std::vector<int32_t> ids = indices(shape.rows, 13), positions = indices(shape.rows, 5);
      Arena arena;
      DeviceMatrix<T> E(arena, table, 1), P(arena, {5, shape.cols}, 2), y(arena, shape, 3), sum(arena, shape, 4);
      DeviceMatrix<float> dE(arena, table, 5);
      embedding<Device<T>>(E.view(), ids, 3, P.view(), positions, y.view());
      reference::embedding<double>(E.host(), ids, 3, P.host(), positions, y.host());
      y.expect_host(tolerance_of<T>());
      add_embedding<Device<T>>(E.view(), ids, sum.view());
      reference::add_embedding<double>(E.host(), ids, sum.host());
      sum.expect_host(tolerance_of<T>());
      DeviceMatrix<T> gradient(arena, shape, 6);
      embedding_backward<Device<T>>(gradient.view(), ids, 3, dE.view());
      reference::embedding_backward<double>(gradient.host(), ids, 3, dE.host());
      dE.expect_host(tolerance_of<float>(shape.rows));
    });
}

TEST(CudaEmbedding, FirstTokensAreReplaced) {
  const testing::CudaDevice device;
  for_each_element([&]<class T>(T) {
    Arena arena;
    const std::vector<int32_t> positions = {0, 1, 2, 0, 1};
    const std::vector<double> row = testing::representable<T>(33, 9);
    DeviceMatrix<T> a(arena, {5, 33}, 1), b(arena, {5, 33}, 2);
    set_first_tokens<Device<T>>(positions, testing::on_device<T>(arena, row), a.view());
    reference::set_first_tokens<double>(positions, row.data(), a.host());
    a.expect_host(0);
    set_first_tokens<Device<T>>(positions, nullptr, b.view());
    reference::set_first_tokens<double>(positions, nullptr, b.host());
    b.expect_host(0);
  });
}

TEST(CudaRotary, TurnsForthAndBack) {
  const testing::CudaDevice device;
  for_each_element([&]<class T>(T) {
    Arena arena;
    const std::vector<int32_t> positions = indices(9, 7);
    DeviceMatrix<T> x(arena, {9, 30}, 1), table(arena, {7, 6}, 2);  // three heads of ten, of which six turn
    for (const Rotation turn : {Rotation::forward, Rotation::back}) {
      rotary<Device<T>>(x.view(), 10, positions, table.view(), turn);
      reference::rotary<double>(x.host(), 10, positions, table.host(), turn);
      x.expect_host(2 * tolerance_of<T>());  // two roundings at the end
    }
  });
}

TEST(CudaDistanceBias, IsThatOfTheReference) {
  const testing::CudaDevice device;
  for_each_element([&]<class T>(T) {
    Arena arena;
    const std::vector<int32_t> buckets = indices(41, 6);
    DeviceMatrix<T> table(arena, {6, 3}, 1);
    DeviceMatrix<float> bias(arena, {3, 41}, 2), dtable(arena, {6, 3}, 3);
    distance_bias<Device<T>>(table.view(), buckets, bias.view());
    reference::distance_bias<double>(table.host(), buckets, bias.host());
    bias.expect_host(0);
    distance_bias_backward<Device<float>>(bias.view(), buckets, dtable.view());
    reference::distance_bias_backward<double>(bias.host(), buckets, dtable.host());
    dtable.expect_host(tolerance_of<float>(41));
  });
}

}  // namespace
}  // namespace qkv
