// Losses of the vectors of texts, which train embedders. qkv/text_loss.h has the formulas.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.h"
#include "qkv/matrix.h"
#include "qkv/text_loss.h"

namespace qkv {

struct VectorLossOptions {
  VectorLoss kind = VectorLoss::info_nce;  // not automatic
  Similarity similarity = Similarity::cosine;
  // For info_nce: the mean of the loss and of that of finding, for each positive, its anchor among all anchors.
  bool symmetric = false;
  // The loss is the sum of those of the first w components of the vectors, for each of these widths w, from 1 to d.
  // Without widths: of all components. Kusupati et al., "Matryoshka Representation Learning" (2022).
  std::vector<int64_t> widths = {};
};

// The vectors of the N rows of a batch: row j N + i of v is column j of row i. Column 0 has the anchors, column 1 the
// positives, the others negatives: at least 2 columns for info_nce, 2 for cosent and cosine, 3 for margin_mse, and any
// number for distill.
template <class Real>
struct TextVectors {
  Matrix<const Real> v;  // [columns N, d], N at least 1
  int64_t columns = 2;
  std::span<const float> scores = {};  // [N] for cosent, cosine and margin_mse; finite
  // For distill: [columns N, d], or [N, d] for the vectors that all columns of a row should have.
  Matrix<const Real> teacher = {};
};

// Returns N times the loss and assigns its gradient to dv: [columns N, d], which overlaps no other matrix. With
// info_nce and cosent similarities are multiplied by exp(log_scale), and the gradient of log_scale is added to
// *dlog_scale if that is not null. A vector whose norm is below 10⁻¹² has no gradient from cosines. Throws Error if a
// number of rows, columns, scores or a width is not as above, or a score is not finite.
template <class Real>
double vector_loss(const VectorLossOptions& options, const TextVectors<Real>& texts, double log_scale, Matrix<Real> dv,
                   double* dlog_scale, Arena& scratch);

// Returns N times the loss, without the gradient.
template <class Real>
double vector_loss(const VectorLossOptions& options, const TextVectors<Real>& texts, double log_scale, Arena& scratch);

}  // namespace qkv
