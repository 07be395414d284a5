// Adam over a table whose rows have a gradient in few steps. Without a gradient, step s changes a row by
//   m ← β1 m,   v ← β2 v,   w ← w − η_s / (1 − β1^s) · m / (√(v / (1 − β2^s)) + ε),
//   average ← a_s average + (1 − a_s) w
// This depends on nothing but the row and the steps, so it is done for all missed steps at once when the row is needed.
#pragma once

#include <cstdint>
#include <span>

#include "ops/adam.h"
#include "qkv/matrix.h"

namespace qkv {

// The factors of the steps s = t + 1 … t + n that a row missed since step t:
//   x = m / (√(v correction) + ε),   w ← w − moved x,   average ← kept average + (1 − kept) w_t − average_moved x,
//   m ← m_factor m,   v ← v_factor v
// This is exact but for ε, which each step counts with the factor √(β2^(s − t) (1 − β2^t) / (1 − β2^s)).
struct MissedSteps {
  double correction = 0, epsilon = 0;   // 1 / (1 − β2^t), ε
  double moved = 0, average_moved = 0;  // train/optimizer/step_history.h
  double m_factor = 1, v_factor = 1;    // β1^n, β2^n
  double kept = 1;                      // Π a_s
};

// One row, or a table.
template <class Real>
struct AdamRow {
  Real *w, *m, *v, *average;  // average: null without a moving average
};

// Brings a row of `cols` elements to the last missed step.
template <class Real>
void catch_up(const MissedSteps& missed, AdamRow<Real> row, int64_t cols);

// Assigns the weights, or the average, that the row would have after catching up.
template <class Real>
void caught_up_weights(const MissedSteps& missed, AdamRow<const Real> row, int64_t cols, Real* out);
template <class Real>
void caught_up_average(const MissedSteps& missed, AdamRow<const Real> row, int64_t cols, Real* out);

// adam_update for rows `ids` of a table, whose gradients are the rows of `gradient`: [ids, d]. No row may occur twice.
template <class Real>
void adam_update_rows(const AdamStep& step, std::span<const int32_t> ids, Matrix<Real> gradient, AdamRow<Real> table);

}  // namespace qkv
