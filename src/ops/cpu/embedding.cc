// Token embeddings, row by row. Backward works on bands of 64 columns. One thread owns a band and visits the tokens in
// order, so the sums do not depend on the number of threads.
#include "ops/embedding.h"

#include <cmath>

#include "core/profile.h"
#include "core/system/isa.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/embedding_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/embedding.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void EmbeddingRows(Matrix<const float> E, const int32_t* ids, float scale, Matrix<const float> P,
                   const int32_t* positions, Matrix<float> y) {
  const Vector factor = set(scale);
  for (int64_t n = 0; n < y.rows; n++) {
    const float *e = E.row(ids[n]), *p = P.row(positions[n]);
    float* y_n = y.row(n);
    for_columns(y.cols, [&](int64_t c, auto io)
                            HWY_ATTR { io.store(hn::MulAdd(factor, io.load(e + c), io.load(p + c)), y_n + c); });
  }
}

void AddEmbeddingRows(Matrix<const float> E, const int32_t* ids, Matrix<float> y) {
  for (int64_t n = 0; n < y.rows; n++) {
    const float* e = E.row(ids[n]);
    float* y_n = y.row(n);
    for_columns(y.cols,
                [&](int64_t c, auto io) HWY_ATTR { io.store(hn::Add(io.load(y_n + c), io.load(e + c)), y_n + c); });
  }
}

void EmbeddingBackwardBand(Matrix<const float> dy, const int32_t* ids, float scale, Matrix<float> dE) {
  const Vector factor = set(scale);
  for (int64_t n = 0; n < dy.rows; n++) {
    const float* dy_n = dy.row(n);
    float* de = dE.row(ids[n]);
    for_columns(dy.cols, [&](int64_t c, auto io)
                             HWY_ATTR { io.store(hn::MulAdd(factor, io.load(dy_n + c), io.load(de + c)), de + c); });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(EmbeddingRows);
HWY_EXPORT(AddEmbeddingRows);
HWY_EXPORT(EmbeddingBackwardBand);

template <class Real>
void sinusoidal_positions(Positions kind, Matrix<Real> P) {
  const bool interleaved = kind == Positions::interleaved;
  const bool closed = kind == Positions::closed_halves || kind == Positions::second_halves;
  const int64_t first = kind == Positions::second_halves ? 2 : kind == Positions::closed_halves ? 1 : 0;
  const int64_t h = P.cols / 2;
  parallel_for(P.cols, [&](int64_t c) {
    const int64_t j = interleaved ? c / 2 : c % h;
    const bool cosine = interleaved ? c % 2 == 1 : c >= h;
    const double exponent = closed ? static_cast<double>(j) / static_cast<double>(h - 1)
                                   : static_cast<double>(2 * j) / static_cast<double>(P.cols);
    const double rate = std::pow(10000.0, -exponent);
    for (int64_t p = 0; p < P.rows; p++) {
      const double angle = static_cast<double>(p + first) * rate;
      P(p, c) = static_cast<Real>(cosine ? std::cos(angle) : std::sin(angle));
    }
  });
}
template void sinusoidal_positions<float>(Positions, Matrix<float>);
template void sinusoidal_positions<double>(Positions, Matrix<double>);

template <>
void embedding<float>(Matrix<const float> E, std::span<const int32_t> ids, float scale, Matrix<const float> P,
                      std::span<const int32_t> positions, Matrix<float> y) {
  const ProfiledOp profiled("embedding", {y.rows, y.cols}, memory_work(3, y.rows, y.cols));
  const auto kernel = QKV_DISPATCH(EmbeddingRows);
  parallel_rows(y.rows, y.cols, [&](int64_t begin, int64_t end) {
    kernel(E, ids.data() + begin, scale, P, positions.data() + begin, y.row_range(begin, end));
  });
}

void embedding(const Int8Matrix& E, std::span<const int32_t> ids, float scale, Matrix<const float> P,
               std::span<const int32_t> positions, Matrix<float> y) {
  parallel_rows(y.rows, y.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      const int32_t id = ids[to_size(n)];
      const float factor = scale * E.scale[id];
      const int8_t* e = E.values.row(id);
      const float* p = P.row(positions[to_size(n)]);
      for (int64_t c = 0; c < y.cols; c++) y(n, c) = factor * static_cast<float>(e[c]) + p[c];
    }
  });
}

template <>
void embedding<double>(Matrix<const double> E, std::span<const int32_t> ids, double scale, Matrix<const double> P,
                       std::span<const int32_t> positions, Matrix<double> y) {
  reference::embedding(E, ids, scale, P, positions, y);
}

template <>
void add_embedding<float>(Matrix<const float> E, std::span<const int32_t> ids, Matrix<float> y) {
  const ProfiledOp profiled("embedding, added", {y.rows, y.cols}, memory_work(3, y.rows, y.cols));
  const auto kernel = QKV_DISPATCH(AddEmbeddingRows);
  parallel_rows(y.rows, y.cols,
                [&](int64_t begin, int64_t end) { kernel(E, ids.data() + begin, y.row_range(begin, end)); });
}

template <>
void add_embedding<double>(Matrix<const double> E, std::span<const int32_t> ids, Matrix<double> y) {
  reference::add_embedding(E, ids, y);
}

template <>
void embedding_backward<float>(Matrix<const float> dy, std::span<const int32_t> ids, float scale, Matrix<float> dE) {
  const ProfiledOp profiled("embedding, backward", {dy.rows, dy.cols}, memory_work(3, dy.rows, dy.cols));
  const auto kernel = QKV_DISPATCH(EmbeddingBackwardBand);
  parallel_blocks(dy.cols, 64, [&](int64_t begin, int64_t end) {
    kernel(dy.col_range(begin, end), ids.data(), scale, dE.col_range(begin, end));
  });
}

template <>
void embedding_backward<double>(Matrix<const double> dy, std::span<const int32_t> ids, double scale,
                                Matrix<double> dE) {
  reference::embedding_backward(dy, ids, scale, dE);
}

template <class Real>
void set_first_tokens(std::span<const int32_t> positions, const Real* row, Matrix<Real> y) {
  reference::set_first_tokens(positions, row, y);
}
template void set_first_tokens(std::span<const int32_t>, const float*, Matrix<float>);
template void set_first_tokens(std::span<const int32_t>, const double*, Matrix<double>);

}  // namespace qkv
#endif
