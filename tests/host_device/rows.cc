// Rows, norms, dropout, embeddings and positions.
#include <cmath>
#include <cstring>

#include "host_device/arguments.h"
#include "host_device/table.h"
#include "ops/reference/distance_bias_reference.h"
#include "ops/reference/dropout_reference.h"
#include "ops/reference/embedding_reference.h"
#include "ops/reference/layer_norm_reference.h"
#include "ops/reference/rotary_reference.h"
#include "ops/reference/rows_reference.h"

namespace qkv::host_device {
namespace {

void fill(qkv_element e, qkv_matrix m, float value) { reference::fill<float>(Result(e, m), value); }

void copy_rows(qkv_element e, qkv_matrix from, qkv_matrix to) {
  reference::copy_rows<float>(Floats(e, from), Result(e, to));
}

void gather_rows(qkv_element e, qkv_matrix from, const int32_t* rows, qkv_matrix to) {
  reference::gather_rows<float>(Floats(e, from), numbers(rows, to.rows), Result(e, to));
}

void scatter_rows(qkv_element e, qkv_matrix from, const int32_t* rows, qkv_matrix to) {
  reference::scatter_rows<float>(Floats(e, from), numbers(rows, from.rows), Result(e, to));
}

void scatter_add_rows(qkv_element e, qkv_matrix from, const int32_t* rows, qkv_matrix to) {
  reference::scatter_add_rows<float>(Floats(e, from), numbers(rows, from.rows), Result(e, to));
}

void scale(qkv_element e, qkv_matrix m, float factor) { reference::scale<float>(Result(e, m), factor); }

void rows_not_finite(qkv_element e, qkv_matrix m, uint8_t* flags) {
  const Floats x(e, m);
  for (int64_t r = 0; r < m.rows; r++) {
    const float* const row = x.matrix().row(r);
    flags[r] = !std::all_of(row, row + m.cols, [](float v) { return std::isfinite(v); });
  }
}

void layer_norm(qkv_element e, qkv_matrix x, const void* gamma, const void* beta, float epsilon, qkv_matrix y,
                float* mean, float* rstd) {
  reference::layer_norm<float>(Floats(e, x), Vector(e, gamma, x.cols), Vector(e, beta, x.cols), epsilon, Result(e, y),
                               mean, rstd);
}

void layer_norm_backward(qkv_element e, qkv_matrix dy, qkv_matrix x, const void* gamma, const float* mean,
                         const float* rstd, qkv_matrix dx, float* dgamma, float* dbeta) {
  reference::layer_norm_backward<float>(Floats(e, dy), Floats(e, x), Vector(e, gamma, x.cols), mean, rstd,
                                        Result(e, dx), dgamma, dbeta);
}

void dropout(qkv_element e, qkv_matrix x, qkv_dropout drop, qkv_matrix y) {
  reference::dropout<float>(Floats(e, x), dropout_of(drop), Result(e, y));
}

void add_dropout(qkv_element e, qkv_matrix x, qkv_matrix f, qkv_dropout drop, qkv_matrix y) {
  reference::add_dropout<float>(Floats(e, x), Floats(e, f), dropout_of(drop), Result(e, y));
}

void embedding(qkv_element e, qkv_matrix E, const int32_t* ids, float scale, qkv_matrix P, const int32_t* positions,
               qkv_matrix y) {
  reference::embedding<float>(Floats(e, E), numbers(ids, y.rows), scale, Floats(e, P), numbers(positions, y.rows),
                              Result(e, y));
}

void add_embedding(qkv_element e, qkv_matrix E, const int32_t* ids, qkv_matrix y) {
  reference::add_embedding<float>(Floats(e, E), numbers(ids, y.rows), Result(e, y));
}

void embedding_backward(qkv_element e, qkv_matrix dy, const int32_t* ids, float scale, qkv_matrix dE) {
  reference::embedding_backward<float>(Floats(e, dy), numbers(ids, dy.rows), scale, floats(dE));
}

void set_first_tokens(qkv_element e, const int32_t* positions, const void* row, qkv_matrix y) {
  reference::set_first_tokens<float>(numbers(positions, y.rows), Vector(e, row, y.cols), Result(e, y));
}

void rotary(qkv_element e, qkv_matrix x, int64_t head_width, const int32_t* positions, qkv_matrix table, int turn) {
  reference::rotary<float>(Result(e, x), head_width, numbers(positions, x.rows), Floats(e, table),
                           turn > 0 ? Rotation::forward : Rotation::back);
}

void distance_bias(qkv_element e, qkv_matrix table, const int32_t* buckets, qkv_matrix bias) {
  reference::distance_bias<float>(Floats(e, table), numbers(buckets, bias.cols), floats(bias));
}

void distance_bias_backward(qkv_matrix dbias, const int32_t* buckets, qkv_matrix dtable) {
  reference::distance_bias_backward<float>(floats(dbias), numbers(buckets, dbias.cols), floats(dtable));
}

}  // namespace

void add_rows(qkv_device& t) {
  t.fill = entry<fill>;
  t.copy_rows = entry<copy_rows>;
  t.gather_rows = entry<gather_rows>;
  t.scatter_rows = entry<scatter_rows>;
  t.scatter_add_rows = entry<scatter_add_rows>;
  t.scale = entry<scale>;
  t.rows_not_finite = entry<rows_not_finite>;
  t.layer_norm = entry<layer_norm>;
  t.layer_norm_backward = entry<layer_norm_backward>;
  t.dropout = entry<dropout>;
  t.add_dropout = entry<add_dropout>;
  t.embedding = entry<embedding>;
  t.add_embedding = entry<add_embedding>;
  t.embedding_backward = entry<embedding_backward>;
  t.set_first_tokens = entry<set_first_tokens>;
  t.rotary = entry<rotary>;
  t.distance_bias = entry<distance_bias>;
  t.distance_bias_backward = entry<distance_bias_backward>;
}

}  // namespace qkv::host_device
