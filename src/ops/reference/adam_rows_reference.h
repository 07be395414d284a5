// Adam for a few rows of a table, element by element.
#pragma once

#include <cmath>

#include "core/to_size.h"
#include "ops/adam_rows.h"
#include "ops/reference/adam_reference.h"

namespace qkv::reference {

// m / (√(v correction) + ε)
template <class Real>
Real direction(const MissedSteps& missed, Real m, Real v) {
  return m / (std::sqrt(v * static_cast<Real>(missed.correction)) + static_cast<Real>(missed.epsilon));
}

template <class Real>
void caught_up_weights(const MissedSteps& missed, AdamRow<const Real> row, int64_t cols, Real* out) {
  for (int64_t c = 0; c < cols; c++)
    out[c] = row.w[c] - static_cast<Real>(missed.moved) * direction(missed, row.m[c], row.v[c]);
}

template <class Real>
void caught_up_average(const MissedSteps& missed, AdamRow<const Real> row, int64_t cols, Real* out) {
  const Real kept = static_cast<Real>(missed.kept), rest = static_cast<Real>(1 - missed.kept);
  for (int64_t c = 0; c < cols; c++)
    out[c] = kept * row.average[c] + rest * row.w[c] -
             static_cast<Real>(missed.average_moved) * direction(missed, row.m[c], row.v[c]);
}

template <class Real>
void catch_up(const MissedSteps& missed, AdamRow<Real> row, int64_t cols) {
  const AdamRow<const Real> before{row.w, row.m, row.v, row.average};
  if (row.average) reference::caught_up_average(missed, before, cols, row.average);
  reference::caught_up_weights(missed, before, cols, row.w);
  for (int64_t c = 0; c < cols; c++) {
    row.m[c] *= static_cast<Real>(missed.m_factor);
    row.v[c] *= static_cast<Real>(missed.v_factor);
  }
}

template <class Real>
void adam_update_rows(const AdamStep& step, std::span<const int32_t> ids, Matrix<Real> gradient, AdamRow<Real> table) {
  const size_t d = to_size(gradient.cols);
  for (int64_t i = 0; i < std::ssize(ids); i++) {
    const int64_t first = ids[to_size(i)] * gradient.cols;
    const std::span<Real> row(gradient.row(i), d);
    const std::span<Real> average = table.average ? std::span(table.average + first, d) : std::span<Real>();
    reference::adam_update<Real>(step, {table.w + first, d}, row, {table.m + first, d}, {table.v + first, d}, average);
  }
}

}  // namespace qkv::reference
