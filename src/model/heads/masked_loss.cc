#include "model/heads/masked_loss.h"

#include "ops/rows.h"

namespace qkv {
namespace {

// Returns the rows of masked tokens, from the arena.
template <class Real>
Matrix<Real> masked_rows(Matrix<const Real> h, const Batch& batch, Context& c) {
  const Matrix<Real> rows = c.arena.matrix<Real>(std::ssize(batch.masked), h.cols);
  gather_rows<Real>(h, batch.masked, rows);
  return rows;
}

}  // namespace

template <class Real>
Loss masked_loss(const MaskedOutput<Real>& layers, Matrix<const Real> h, const Batch& batch, double smoothing,
                 Context& c) {
  const Arena::Scope scope(c.arena);
  typename HeadTransform<Real>::Saved saved;
  Matrix<Real> x = masked_rows<Real>(h, batch, c);
  if (layers.head) x = layers.head->forward(x, c, saved);
  return layers.output.loss(x, batch.labels, smoothing, c);
}

template <class Real>
Loss masked_loss_and_gradient(const MaskedOutput<Real>& layers, Matrix<const Real> h, const Batch& batch,
                              double smoothing, Matrix<Real> dh, Context& c) {
  const Probe::Part part(c.probe, "head", TokenSide::target);
  const Arena::Scope scope(c.arena);
  typename HeadTransform<Real>::Saved saved;
  const Matrix<Real> x = masked_rows<Real>(h, batch, c);
  const Matrix<Real> y = layers.head ? layers.head->forward(x, c, saved) : x;
  const Matrix<Real> dy = c.arena.matrix<Real>(y.rows, y.cols);
  const Loss loss = layers.output.loss_and_gradient(y, batch.labels, smoothing, dy, c);
  const Matrix<Real> dx = layers.head ? c.arena.matrix<Real>(x.rows, x.cols) : dy;
  if (layers.head) layers.head->backward(dy, dx, c, saved);
  fill<Real>(dh, 0);
  scatter_rows<Real>(dx, batch.masked, dh);
  return loss;
}

#define QKV_INSTANTIATE(T)                                                                                         \
  template Loss masked_loss(const MaskedOutput<T>&, Matrix<const T>, const Batch&, double, Context&);              \
  template Loss masked_loss_and_gradient(const MaskedOutput<T>&, Matrix<const T>, const Batch&, double, Matrix<T>, \
                                         Context&);
QKV_FOR_EACH_ELEMENT(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE

}  // namespace qkv
