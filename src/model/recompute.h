// Layers whose activations are not kept: a layer's forward pass leaves its result alone, and backward runs it again
// from its input. Dropout is a function of (seed, step, place), so the second pass is the first one bit by bit. Chen et
// al., "Training Deep Nets with Sublinear Memory Cost" (2016).
#pragma once

#include <algorithm>

#include "layers/context.h"
#include "ops/rows.h"

namespace qkv {

// f() of x's shape; all else that f takes from the arena is given back.
template <class Real, class F>
Matrix<Real> result_alone(Matrix<const Real> x, Context& c, F&& f) {
  const Matrix<Real> kept = c.arena.matrix<Real>(x.rows, x.cols);
  const Arena::Scope scope(c.arena);
  const Matrix<Real> y = f();
  parallel_rows(y.rows, y.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) std::copy_n(y.row(r), y.cols, kept.row(r));
  });
  return kept;
}

}  // namespace qkv
