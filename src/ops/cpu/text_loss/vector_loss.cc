#include "ops/vector_loss.h"

#include <cmath>

#include "core/fail.h"
#include "ops/cpu/text_loss/vector_loss_parts.h"
#include "ops/rows.h"

namespace qkv {

namespace {

void check_columns(VectorLoss kind, int64_t rows, int64_t columns) {
  const bool scored = kind == VectorLoss::cosent || kind == VectorLoss::cosine;
  const bool margins = kind == VectorLoss::margin_mse;
  const int64_t least = kind == VectorLoss::distill ? 1 : margins ? 3 : 2;
  if (columns < least || (columns > least && (scored || margins)))
    fail("columns: {} (the loss reads {}{})", columns, scored || margins ? "" : "at least ", least);
  if (rows < 1 || rows % columns != 0) fail("v: {} rows (a multiple of the {} columns is needed)", rows, columns);
}

void check_scores(std::span<const float> scores, int64_t N) {
  if (std::ssize(scores) != N) fail("scores: {} for {} rows (one for each is needed)", scores.size(), N);
  for (size_t i = 0; i < scores.size(); i++)
    if (!std::isfinite(scores[i])) fail("scores: {} in row {} (must be finite)", scores[i], i);
}

template <class Real>
void check_vector_loss(const VectorLossOptions& options, const TextVectors<Real>& texts) {
  const Matrix<const Real> v = texts.v, teacher = texts.teacher;
  if (options.kind == VectorLoss::automatic) fail("kind: automatic (the caller must choose a loss)");
  check_columns(options.kind, v.rows, texts.columns);
  const int64_t N = v.rows / texts.columns;
  if (options.kind == VectorLoss::distill) {
    if ((teacher.rows != N && teacher.rows != v.rows) || teacher.cols != v.cols)
      fail("teacher: {} vectors of {} components ({} or {} of {} are needed)", teacher.rows, teacher.cols, N, v.rows,
           v.cols);
  } else if (options.kind != VectorLoss::info_nce) {
    check_scores(texts.scores, N);
  }
  for (const int64_t width : options.widths)
    if (width < 1 || width > v.cols) fail("widths: {} (must be between 1 and {})", width, v.cols);
}

template <class Real>
double loss_of_width(const VectorLossPart<Real>& part, Arena& scratch) {
  switch (part.kind) {
    case VectorLoss::info_nce:
      return contrastive_loss(part, scratch);
    case VectorLoss::distill:
      return distillation_loss(part, scratch);
    default:
      return column_loss(part, scratch);
  }
}

}  // namespace

template <class Real>
double vector_loss(const VectorLossOptions& options, const TextVectors<Real>& texts, double log_scale, Matrix<Real> dv,
                   double* dlog_scale, Arena& scratch) {
  check_vector_loss(options, texts);
  if (dv.data) fill<Real>(dv, 0);
  const auto first = [](const auto& m, int64_t width) { return m.data ? m.col_range(0, width) : m; };
  double loss = 0;
  for (size_t i = 0; i < std::max<size_t>(1, options.widths.size()); i++) {
    const int64_t width = options.widths.empty() ? texts.v.cols : options.widths[i];
    const VectorLossPart<Real> part{options.kind,
                                    options.similarity,
                                    options.symmetric,
                                    first(texts.v, width),
                                    texts.v.rows / texts.columns,
                                    texts.scores,
                                    first(texts.teacher, width),
                                    std::exp(log_scale),
                                    first(dv, width),
                                    dlog_scale};
    loss += loss_of_width(part, scratch);
  }
  return loss;
}

template <class Real>
double vector_loss(const VectorLossOptions& options, const TextVectors<Real>& texts, double log_scale, Arena& scratch) {
  return vector_loss<Real>(options, texts, log_scale, {}, nullptr, scratch);
}

#define QKV_INSTANTIATE(Real)                                                                                    \
  template double vector_loss(const VectorLossOptions&, const TextVectors<Real>&, double, Matrix<Real>, double*, \
                              Arena&);                                                                           \
  template double vector_loss(const VectorLossOptions&, const TextVectors<Real>&, double, Arena&);
QKV_INSTANTIATE(float)
QKV_INSTANTIATE(double)
#undef QKV_INSTANTIATE

}  // namespace qkv
