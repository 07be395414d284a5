#include "model/layers/low_rank.h"

#include <algorithm>

#include "model/layers/context.h"
#include "model/layers/parameter.h"
#include "ops/dropout.h"
#include "ops/linear.h"
#include "ops/row_linear.h"
#include "ops/rows.h"

namespace qkv {
namespace {

template <class Real>
void apply(Matrix<const Real> x, Matrix<const Real> W, Matrix<Real> y, Context& c) {
  if (c.inference)
    row_linear<Real>(x, W, nullptr, y, c.arena);
  else
    linear<Real>(x, W, nullptr, y, c.arena);
}

}  // namespace

// The outputs that y has and the update changes: columns of y, and rows of B.
template <class Real>
struct LowRank<Real>::Part {
  int64_t column, row, count;
};

template <class Real>
typename LowRank<Real>::Part LowRank<Real>::part(int64_t first, int64_t outputs) const {
  const int64_t from = std::max(begin, first), to = std::min(end, first + outputs);
  return {from - first, from - begin, std::max<int64_t>(0, to - from)};
}

// Returns s x Aᵀ: [N, r].
template <class Real>
Matrix<Real> LowRank<Real>::project(Matrix<const Real> x, Context& c) const {
  const Matrix<Real> t = c.arena.matrix<Real>(x.rows, A->shape[0]);
  apply<Real>(x, A->matrix(), t, c);
  qkv::scale<Real>(t, scale);
  return t;
}

template <class Real>
void LowRank<Real>::add(Matrix<const Real> x, Matrix<Real> y, int64_t first, Context& c) const {
  const Part p = part(first, y.cols);
  if (p.count == 0) return;
  const Arena::Scope scope(c.arena);
  const Matrix<Real> update = c.arena.matrix<Real>(y.rows, p.count), out = y.col_range(p.column, p.column + p.count);
  apply<Real>(project(x, c), B->matrix().row_range(p.row, p.row + p.count), update, c);
  add_dropout<Real>(out, update, Dropout{}, out);
}

template <class Real>
void LowRank<Real>::backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, int64_t first,
                             Context& c) const {
  const Part p = part(first, dy.cols);
  if (p.count == 0) return;
  const Arena::Scope scope(c.arena);
  const Matrix<Real> t = project(x, c), dt = c.arena.matrix<Real>(t.rows, t.cols);
  linear_backward<Real>(t, B->matrix().row_range(p.row, p.row + p.count), dy.col_range(p.column, p.column + p.count),
                        {dt, B->gradient_matrix().row_range(p.row, p.row + p.count), nullptr, false}, c.arena);
  qkv::scale<Real>(dt, scale);
  linear_backward<Real>(x, A->matrix(), dt, {dx, A->gradient_matrix(), nullptr, true}, c.arena);
  c.probed_gradient("adapter", A->gradient_matrix());
  c.probed_gradient("adapter", B->gradient_matrix());
}

QKV_FOR_ELEMENTS(template struct LowRank);

}  // namespace qkv
