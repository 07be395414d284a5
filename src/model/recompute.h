// Recomputation of activations (gradient checkpointing): the forward pass of a layer keeps only its result, and
// backward runs it again from its input. Dropout is a function of (seed, step, place), so the second pass has the same
// bits. Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).
#pragma once

#include "model/layers/context.h"
#include "ops/rows.h"

namespace qkv {

// Returns f(), which has the shape of x, and frees everything else that f takes from the arena.
template <class Real, class F>
Matrix<Real> result_only(Matrix<const Real> x, Context& c, F&& f) {
  const Matrix<Real> kept = c.arena.matrix<Real>(x.rows, x.cols);
  const Arena::Scope scope(c.arena);
  copy_rows<Real>(f(), kept);
  return kept;
}

}  // namespace qkv
