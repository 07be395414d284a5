// Losses of the CUDA plugin against the references.
#include "ops/cross_entropy.h"
#include "ops/gathered_logits.h"
#include "ops/r_drop.h"
#include "ops/reference/cross_entropy_reference.h"
#include "ops/reference/gathered_logits_reference.h"
#include "ops/reference/r_drop_reference.h"
#include "ops/reference/sampled_loss_reference.h"
#include "ops/sampled_loss.h"
#include "tests/cuda/device_matrix.h"

namespace qkv {
namespace {

using testing::DeviceMatrix;
using testing::for_each_element;
using testing::representable;
using testing::Shape;
using testing::tolerance_of;

constexpr Shape kShapes[] = {{0, 5}, {1, 1}, {5, 31}, {9, 32}, {33, 100}};

std::vector<int32_t> labels(Shape shape) {
  std::vector<int32_t> targets;
  for (int64_t n = 0; n < shape.rows; n++) targets.push_back(static_cast<int32_t>(n * 7 % shape.cols));
  return targets;
}

TEST(CudaCrossEntropy, IsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const Shape shape : kShapes)
    for_each_element([&]<class T>(T) {
      for (const float smoothing : {0.0f, 0.125f}) {
        const std::vector<int32_t> targets = labels(shape);
        Arena arena;
        DeviceMatrix<T> logits(arena, shape, 1), decoded(arena, shape, 2);
        DeviceMatrix<float> loss(arena, {1, shape.rows}, 3), nll(arena, {1, shape.rows}, 4);
        cross_entropy<Device<T>>(logits.view(), targets, smoothing, loss.view().data, nll.view().data);
        reference::cross_entropy<double>(logits.host(), targets, smoothing, loss.host().data, nll.host().data);
        loss.expect_host(tolerance_of<float>(shape.cols));
        nll.expect_host(tolerance_of<float>(shape.cols));
        cross_entropy_with_gradient<Device<T>>(logits.view(), targets, smoothing, 0.5f, loss.view().data,
                                               nll.view().data);
        reference::cross_entropy_with_gradient<double>(logits.host(), targets, smoothing, 0.5, loss.host().data,
                                                       nll.host().data);
        loss.expect_host(tolerance_of<float>(shape.cols));
        if (shape.cols > 1) logits.expect_host(tolerance_of<T>(shape.cols));  // the gradient of one logit is 0
        log_softmax<Device<T>>(decoded.view());
        reference::log_softmax<double>(decoded.host());
        if (shape.cols > 1) decoded.expect_host(tolerance_of<T>(shape.cols));
      }
    });
}

TEST(CudaCrossEntropy, ALogitOfMinusInfinityHasNoProbability) {
  const testing::CudaDevice device;
  Arena arena;
  const DeviceMatrix<float> logits(arena, {1, 3}, {0, -std::numeric_limits<double>::infinity(), 0});
  DeviceMatrix<float> loss(arena, {1, 1}, 1), nll(arena, {1, 1}, 2);
  const std::vector<int32_t> targets = {2};
  cross_entropy<Device<float>>(logits.view(), targets, 0, loss.view().data, nll.view().data);
  EXPECT_FLOAT_EQ(testing::numbers_of(std::span(loss.view().data, 1))[0], std::log(2.0f));
}

TEST(CudaCrossEntropy, LossesAreSummedInBlocks) {
  const testing::CudaDevice device;
  for (const int64_t N : {0, 1, 64, 65, 1000}) {
    Arena arena;
    const std::vector<double> x = representable<float>(N, 1);
    double exact = 0;
    for (const double value : x) exact += value;
    EXPECT_NEAR(sum_losses<Device<float>>(testing::on_device<float>(arena, x), N, 64), exact, 1e-12);
  }
}

TEST(CudaRDrop, IsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const Shape shape : kShapes)
    for_each_element([&]<class T>(T) {
      const std::vector<int32_t> targets = labels(shape);
      Arena arena;
      DeviceMatrix<T> a(arena, shape, 1), b(arena, shape, 2);
      DeviceMatrix<float> loss(arena, {1, shape.rows}, 3), nll(arena, {1, shape.rows}, 4);
      r_drop_with_gradient<Device<T>>(a.view(), b.view(), targets, 0.125f, 3, loss.view().data, nll.view().data);
      reference::r_drop_with_gradient<double>(a.host(), b.host(), targets, 0.125, 3, loss.host().data, nll.host().data);
      loss.expect_host(tolerance_of<float>(shape.cols));
      nll.expect_host(tolerance_of<float>(shape.cols));
      if (shape.cols == 1) return;
      a.expect_host(tolerance_of<T>(shape.cols));
      b.expect_host(tolerance_of<T>(shape.cols));
    });
}

TEST(CudaSampledLoss, IsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const ItemLoss kind : {ItemLoss::sampled_softmax, ItemLoss::gbce})
    for_each_element([&]<class T>(T) {
      const Shape shape = {9, 40};
      Arena arena;
      DeviceMatrix<T> s(arena, shape, 1);
      DeviceMatrix<float> loss(arena, {1, shape.rows}, 2);
      const std::vector<float> draws = testing::normal<float>(shape.rows * shape.cols, 3);
      sampled_loss<Device<T>>({kind, 0.75}, draws, s.view(), loss.view().data);
      for (int64_t n = 0; n < shape.rows; n++) {
        double* const row = s.host().row(n);
        loss.host()(0, n) = kind == ItemLoss::sampled_softmax
                                ? reference::sampled_softmax_loss(&draws[to_size(n * shape.cols)], row, shape.cols)
                                : reference::binary_loss(0.75, row[0], row + 1, shape.cols - 1);
      }
      loss.expect_host(tolerance_of<float>(shape.cols));
      s.expect_host(tolerance_of<T>(shape.cols));
    });
}

TEST(CudaSampledLoss, OfSharedNegativesIsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const ItemLoss kind : {ItemLoss::sampled_softmax, ItemLoss::gbce})
    for_each_element([&]<class T>(T) {
      const Shape shape = {9, 41};
      std::vector<int32_t> ids;
      for (int32_t k = 0; k < 40; k++) ids.push_back(k / 2 * 3);
      const std::vector<int32_t> positive = {0, 3, 4, 57, 58, 30, 1, 2, 3};
      Arena arena;
      DeviceMatrix<T> s(arena, shape, 1);
      DeviceMatrix<float> loss(arena, {1, shape.rows}, 2);
      shared_sampled_loss<Device<T>>({kind, 0.75}, positive, ids, s.view(), loss.view().data, arena);
      reference::hide_labels<double>(positive, ids, s.host());
      if (kind == ItemLoss::sampled_softmax) {
        const std::vector<int32_t> last(9, 40);
        std::vector<double> nll(9);
        reference::cross_entropy_with_gradient<double>(s.host(), last, 0, 1, loss.host().data, nll.data());
      } else {
        for (int64_t n = 0; n < shape.rows; n++)
          loss.host()(0, n) = reference::binary_loss(0.75, s.host()(n, 40), s.host().row(n), 40);
      }
      loss.expect_host(tolerance_of<float>(shape.cols));
      s.expect_host(tolerance_of<T>(shape.cols));
    });
}

TEST(CudaGatheredLogits, AreThoseOfTheReference) {
  const testing::CudaDevice device;
  for (const Shape shape : {Shape{0, 3}, Shape{1, 1}, Shape{7, 5}, Shape{20, 33}})
    for_each_element([&]<class T>(T) {
      const int64_t d = 50, V = 13;
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < shape.rows * shape.cols; i++) ids.push_back(static_cast<int32_t>(i * i * 5 % V));
      const Matrix<const int32_t> chosen(ids.data(), shape.rows, shape.cols);
      Arena arena;
      DeviceMatrix<T> h(arena, {shape.rows, d}, 1), E(arena, {V, d}, 2), s(arena, shape, 3), ds(arena, shape, 4);
      DeviceMatrix<T> dh(arena, {shape.rows, d}, 5);
      DeviceMatrix<float> dE(arena, {V, d}, 6);
      gathered_logits<Device<T>>(h.view(), E.view(), chosen, s.view());
      reference::gathered_logits<double>(h.host(), E.host(), chosen, s.host());
      s.expect_host(tolerance_of<T>(d));
      gathered_logits_backward<Device<T>>(h.view(), E.view(), chosen, ds.view(), dh.view(), dE.view(), arena);
      reference::gathered_logits_backward<double>(h.host(), E.host(), chosen, ds.host(), dh.host(), dE.host());
      dh.expect_host(tolerance_of<T>(shape.cols));
      dE.expect_host(tolerance_of<float>(shape.rows * shape.cols));
    });
}

}  // namespace
}  // namespace qkv
