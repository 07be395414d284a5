// The squared distance of vectors from those of a teacher.
#include "ops/cpu/parallel_rows.h"
#include "ops/cpu/text_loss/vector_loss_parts.h"

namespace qkv {

template <class Real>
double distillation_loss(const VectorLossPart<Real>& part, Arena& scratch) {
  const Arena::Scope scope(scratch);
  const Matrix<const Real> v = part.v, teacher = part.teacher;
  const double share = static_cast<double>(part.N) / static_cast<double>(v.rows * v.cols);
  double loss = 0, *row_loss = scratch.take<double>(v.rows);
  parallel_rows(v.rows, v.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      const Real* target = teacher.row(n % teacher.rows);
      row_loss[n] = 0;
      for (int64_t i = 0; i < v.cols; i++) {
        const double error = static_cast<double>(v(n, i)) - static_cast<double>(target[i]);
        row_loss[n] += error * error;
        if (part.dv.data) part.dv(n, i) += static_cast<Real>(2 * share * error);
      }
    }
  });
  for (int64_t n = 0; n < v.rows; n++) loss += row_loss[n];
  return share * loss;
}

template double distillation_loss(const VectorLossPart<float>&, Arena&);
template double distillation_loss(const VectorLossPart<double>&, Arena&);

}  // namespace qkv
