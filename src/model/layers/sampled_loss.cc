#include "model/layers/sampled_loss.h"

#include <algorithm>

#include "core/device.h"
#include "core/to_size.h"
#include "ops/cross_entropy.h"
#include "ops/gathered_logits.h"
#include "ops/linear.h"
#include "ops/rows.h"

namespace qkv {
namespace {

constexpr int64_t kRowsAtOnce = 512;

// The scores of a block of rows: those of the shared negatives, then that of the label. Rows are aligned.
template <class Real>
struct SharedScores {
  Matrix<Real> all, negatives, label;  // [n, K + 1], [n, K], [n, 1]

  SharedScores(int64_t rows, int64_t K, Arena& arena) {
    const int64_t stride = (K + 16) / 16 * 16;
    all = {arena.take<Real>(rows * stride), rows, K + 1, stride};
    negatives = all.col_range(0, K);
    label = all.col_range(K, K + 1);
  }
};

}  // namespace

template <class Real>
Loss sampled_loss_and_gradient(const Parameter<Real>& weight, Matrix<const Real> h, const Candidates& candidates,
                               SampledLoss kind, Matrix<Real> dh, Context& c) {
  const Arena::Scope scope(c.arena);
  const Probe::Part part(c.probe, "output", TokenSide::target);
  const Uploaded<Real> on_device({all_of(candidates.ids)});
  const Matrix<Real> s = c.arena.matrix<Real>(candidates.ids.rows, candidates.ids.cols);
  Statistic<Real>* loss = c.arena.take<Statistic<Real>>(s.rows);
  gathered_logits<Real>(h, weight.matrix(), candidates.ids, s);
  c.probed("logits", s);
  sampled_loss<Real>(kind, candidates.log_draws, s, loss);
  c.probed("loss", Matrix<Statistic<Real>>(loss, s.rows, 1));
  c.probed("loss", s, Pass::backward);
  gathered_logits_backward<Real>(h, weight.matrix(), candidates.ids, s, dh, weight.gradient_matrix(), c.arena);
  c.probed("logits", dh, Pass::backward);
  c.probed_gradient("logits", weight.gradient_matrix());
  const double total = sum_losses<Real>(loss, s.rows, s.rows);
  return {total, total, s.rows};
}

// The correction −log_draws is the bias of the product.
template <class Real>
Loss shared_loss_and_gradient(const Parameter<Real>& weight, Matrix<const Real> h, std::span<const int32_t> labels,
                              const SharedNegatives& negatives, SampledLoss kind, Matrix<Real> dh, Context& c) {
  const Arena::Scope scope(c.arena);
  const Probe::Part part(c.probe, "output", TokenSide::target);
  const Uploaded<Real> on_device({negatives.ids});
  const int64_t K = std::ssize(negatives.ids), d = h.cols;
  const Matrix<Real> E = c.arena.matrix<Real>(K, d);
  gather_rows<Real>(weight.matrix(), negatives.ids, E);
  const auto dE = zeros<Statistic<Real>>(c.arena, K, d);
  Real* correction = nullptr;
  if (kind.kind == ItemLoss::sampled_softmax) {
    correction = c.arena.take<Real>(K);
    shared_negatives_bias(negatives.log_draws, correction);
  }
  Statistic<Real>* loss = c.arena.take<Statistic<Real>>(h.rows);
  for (int64_t begin = 0; begin < h.rows; begin += kRowsAtOnce) {
    const Arena::Scope block(c.arena);
    const int64_t end = std::min(h.rows, begin + kRowsAtOnce), rows = end - begin;
    const Matrix<const Real> x = h.row_range(begin, end);
    const Matrix<Real> dx = dh.row_range(begin, end);
    const std::span<const int32_t> label = labels.subspan(to_size(begin), to_size(rows));
    const Matrix<const int32_t> chosen(label.data(), rows, 1);
    const SharedScores<Real> s(rows, K, c.arena);
    linear<Real>(x, E, correction, s.negatives, c.arena);
    gathered_logits<Real>(x, weight.matrix(), chosen, s.label);
    c.probed("logits", s.all, Pass::forward, begin);
    shared_sampled_loss<Real>(kind, label, negatives.ids, s.all, loss + begin, c.arena);
    c.probed("loss", Matrix<Statistic<Real>>(loss + begin, rows, 1), Pass::forward, begin);
    c.probed("loss", s.all, Pass::backward, begin);
    gathered_logits_backward<Real>(x, weight.matrix(), chosen, s.label, dx, weight.gradient_matrix(), c.arena);
    linear_backward<Real>(x, E, s.negatives, {dx, dE, nullptr, true}, c.arena);
    c.probed("logits", dx, Pass::backward, begin);
  }
  scatter_add_rows<Statistic<Real>>(dE, negatives.ids, weight.gradient_matrix());
  c.probed_gradient("logits", weight.gradient_matrix());
  const double total = sum_losses<Real>(loss, h.rows, kRowsAtOnce);
  return {total, total, h.rows};
}

#define QKV_INSTANTIATE(T)                                                                                      \
  template Loss sampled_loss_and_gradient(const Parameter<T>&, Matrix<const T>, const Candidates&, SampledLoss, \
                                          Matrix<T>, Context&);                                                 \
  template Loss shared_loss_and_gradient(const Parameter<T>&, Matrix<const T>, std::span<const int32_t>,        \
                                         const SharedNegatives&, SampledLoss, Matrix<T>, Context&);
QKV_FOR_EACH_ELEMENT(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE

}  // namespace qkv
