#include "model/layers/output.h"

#include <algorithm>

#include "core/to_size.h"
#include "model/layers/linear.h"
#include "ops/cross_entropy.h"
#include "ops/logit_ranks.h"
#include "ops/next_tokens.h"
#include "ops/r_drop.h"
#include "ops/rows.h"
#include "ops/softcap.h"
#include "ops/top_k_logits.h"

namespace qkv {
namespace {

// Returns the number of tokens whose logits exist at once: 512, or as many as fit in 32 MiB.
int64_t rows_at_once(int64_t vocab) { return std::clamp<int64_t>((int64_t{1} << 23) / vocab, 1, 512); }

// The losses of the rows of a pass.
template <class Real>
struct RowLosses {
  Statistic<Real>*loss, *nll;  // [N]
  int64_t rows, block;

  RowLosses(int64_t N, int64_t rows_of_a_block, Arena& arena)
      : loss(arena.take<Statistic<Real>>(N)), nll(arena.take<Statistic<Real>>(N)), rows(N), block(rows_of_a_block) {}
  Matrix<Statistic<Real>> of_block(int64_t begin, int64_t n) const { return {loss + begin, n, 1}; }
  Loss sum() const { return {sum_losses<Real>(loss, rows, block), sum_losses<Real>(nll, rows, block), rows}; }
};

}  // namespace

template <class Real>
Matrix<Real> Output<Real>::logits(Matrix<const Real> h, Context& c) const {
  const Matrix<Real> y = c.arena.matrix<Real>(h.rows, weight_->shape[0]);
  logits_into(h, y, c);
  return y;
}

template <class Real>
void Output<Real>::logits_into(Matrix<const Real> h, Matrix<Real> y, Context& c) const {
  if (cap_ == 0) return product<Real>(h, *weight_, 0, y.cols, bias(), y, c);
  product<Real>(h, *weight_, 0, y.cols, bias(), y, c, Epilogue<Real>::softcap(cap_));
}

template <>
NextTokens Output<float>::next(Matrix<const float> h, std::span<const int32_t> hidden, int64_t k, Context& c) const {
  const NextTokens next = make_next_tokens(h.rows, k, std::ssize(hidden), c.arena);
  if (weight_->int8.values.data)
    next_tokens(h, weight_->int8, bias(), hidden, next, c.arena, cap_);
  else
    next_tokens(h, weight_->matrix(), bias(), hidden, next, c.arena, cap_);
  return next;
}

template <>
TopKLogits Output<float>::best(Matrix<const float> h, HiddenTokens hidden, int64_t k, Context& c) const {
  const TopKLogits best{c.arena.matrix<float>(h.rows, k), c.arena.matrix<int32_t>(h.rows, k)};
  if (weight_->int8.values.data)
    top_k_logits(h, weight_->int8, bias(), {hidden}, best, c.arena);
  else
    top_k_logits(h, weight_->matrix(), bias(), {hidden}, best, c.arena);
  return best;
}

template <>
void Output<float>::ranks(Matrix<const float> h, const LogitChanges& changes, const LogitRanks& ranks,
                          Context& c) const {
  if (weight_->int8.values.data)
    logit_ranks(h, weight_->int8, bias(), changes, ranks, c.arena);
  else
    logit_ranks(h, weight_->matrix(), bias(), changes, ranks, c.arena);
}

template <>
void Output<float>::chosen(Matrix<const float> h, std::span<const int32_t> tokens, Matrix<float> y, Context& c) const {
  const Arena::Scope scope(c.arena);
  const int64_t K = std::ssize(tokens), d = weight_->shape[1];
  const auto gather = [&]<class T>(const T* from, int64_t width) {
    const Matrix<T> to = c.arena.matrix<T>(K, width);
    gather_rows<T>({from, weight_->shape[0], width}, tokens, to);
    return to.data;
  };
  const float* bias = bias_ ? gather(bias_->value, 1) : nullptr;
  if (const Int8Matrix& W = weight_->int8; W.values.data)
    row_linear(h, Int8Matrix{{gather(W.values.data, d), K, d}, gather(W.scale, 1), gather(W.sums, 1)}, bias, y,
               c.arena);
  else
    row_linear(h, Matrix<const float>(gather(weight_->value, d), K, d), bias, y, c.arena);
}

template <class Real>
Loss Output<Real>::loss(Matrix<const Real> h, std::span<const int32_t> labels, double smoothing, Context& c) const {
  const Arena::Scope all(c.arena);
  const int64_t block = rows_at_once(weight_->shape[0]);
  const RowLosses<Real> losses(h.rows, block, c.arena);
  for (int64_t begin = 0; begin < h.rows; begin += block) {
    const Arena::Scope scope(c.arena);
    const int64_t end = std::min(h.rows, begin + block), n = end - begin;
    cross_entropy<Real>(logits(h.row_range(begin, end), c), labels.subspan(to_size(begin), to_size(n)),
                        static_cast<Arithmetic<Real>>(smoothing), losses.loss + begin, losses.nll + begin);
  }
  return losses.sum();
}

template <class Real>
Loss Output<Real>::loss_and_gradient(Matrix<const Real> h, std::span<const int32_t> labels, double smoothing,
                                     Matrix<Real> dh, Context& c) const {
  const Probe::Part part(c.probe, "output", TokenSide::target);
  const Arena::Scope all(c.arena);
  const int64_t block = rows_at_once(weight_->shape[0]);
  const RowLosses<Real> losses(h.rows, block, c.arena);
  for (int64_t begin = 0; begin < h.rows; begin += block) {
    const Arena::Scope scope(c.arena);
    const int64_t end = std::min(h.rows, begin + block), n = end - begin;
    const Matrix<const Real> rows = h.row_range(begin, end);
    const Matrix<Real> d = logits(rows, c);  // becomes dlogits = p − q
    const Matrix<const Real> capped = keep_capped(d, c);
    c.probed("logits", d, Pass::forward, begin);
    cross_entropy_with_gradient<Real>(d, labels.subspan(to_size(begin), to_size(n)),
                                      static_cast<Arithmetic<Real>>(smoothing), 1, losses.loss + begin,
                                      losses.nll + begin);
    c.probed("loss", losses.of_block(begin, n), Pass::forward, begin);
    backward(rows, capped, d, dh.row_range(begin, end), c, begin);
  }
  return losses.sum();
}

template <class Real>
Loss Output<Real>::r_drop_and_gradient(Matrix<const Real> h, Matrix<const Real> other, std::span<const int32_t> labels,
                                       Objective objective, Matrix<Real> dh, Matrix<Real> dother, Context& c) const {
  const Probe::Part part(c.probe, "output", TokenSide::target);
  const Arena::Scope all(c.arena);
  const int64_t block = rows_at_once(weight_->shape[0]);
  const RowLosses<Real> losses(h.rows, block, c.arena);
  for (int64_t begin = 0; begin < h.rows; begin += block) {
    const Arena::Scope scope(c.arena);
    const int64_t end = std::min(h.rows, begin + block), n = end - begin;
    const Matrix<const Real> a = h.row_range(begin, end), b = other.row_range(begin, end);
    const Matrix<Real> da = logits(a, c), db = logits(b, c);
    const Matrix<const Real> capped_a = keep_capped(da, c), capped_b = keep_capped(db, c);
    c.probed("logits", da, Pass::forward, begin);
    c.probed("logits", db, Pass::forward, begin);
    r_drop_with_gradient<Real>(
        da, db, labels.subspan(to_size(begin), to_size(n)), static_cast<Arithmetic<Real>>(objective.label_smoothing),
        static_cast<Arithmetic<Real>>(objective.r_drop), losses.loss + begin, losses.nll + begin);
    c.probed("loss", losses.of_block(begin, n), Pass::forward, begin);
    backward(a, capped_a, da, dh.row_range(begin, end), c, begin);
    backward(b, capped_b, db, dother.row_range(begin, end), c, begin);
  }
  return losses.sum();
}

template <class Real>
Matrix<const Real> Output<Real>::keep_capped(Matrix<const Real> logits, Context& c) const {
  if (cap_ == 0) return {};
  const Matrix<Real> kept = c.arena.matrix<Real>(logits.rows, logits.cols);
  copy_rows<Real>(logits, kept);
  return kept;
}

template <class Real>
void Output<Real>::backward(Matrix<const Real> h, Matrix<const Real> capped, Matrix<Real> dlogits, Matrix<Real> dh,
                            Context& c, int64_t first) const {
  c.probed("loss", dlogits, Pass::backward, first);
  if (cap_ > 0) softcap_backward<Real>(capped, cap_, dlogits);
  product_backward<Real>(h, *weight_, 0, dlogits.cols, dlogits, dh, bias_ ? bias_->gradient : nullptr, c);
  c.probed("logits", dh, Pass::backward, first);
  c.probed_gradient("logits", weight_->gradient_matrix());
  if (bias_) c.probed_gradient("logits", Matrix<Statistic<Real>>(bias_->gradient, 1, bias_->size()));
}

QKV_FOR_ELEMENTS(template class Output);

}  // namespace qkv
