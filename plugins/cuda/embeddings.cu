// Embeddings, rotary positions, and biases of distances: ops/embedding.h, ops/rotary.h, ops/distance_bias.h.
#include "arguments.h"
#include "grid.h"
#include "table.h"
#include "warp.h"

namespace qkv::cuda {
namespace kernel {

// y_n = scale · E[id_n] + P[position_n]
template <class T>
__global__ void embedding(Matrix<const T> E, const int32_t* ids, float scale, Matrix<const T> P,
                          const int32_t* positions, Matrix<T> y) {
  const Place at = place_in(y.rows, y.cols);
  if (at.inside) y(at.row, at.col) = T(scale * E(ids[at.row], at.col) + P(positions[at.row], at.col));
}

// y_n += E[id_n]
template <class T>
__global__ void add_embedding(Matrix<const T> E, const int32_t* ids, Matrix<T> y) {
  const Place at = place_in(y.rows, y.cols);
  if (at.inside) y(at.row, at.col) = T(y(at.row, at.col) + E(ids[at.row], at.col));
}

// dE[id_n] += scale · dy_n. A warp has a row of dE, and adds in the order of n.
template <class T>
__global__ void embedding_backward(Matrix<const T> dy, const int32_t* ids, float scale, Matrix<float> dE) {
  const int64_t id = warp_number();
  if (id >= dE.rows) return;
  for_each_match(ids, dy.rows, id, [&](int64_t n) {
    for (int64_t c = lane_number(); c < dE.cols; c += kLanes) dE(id, c) += scale * dy(n, c);
  });
}

// y_n = row if position_n = 0; zeros without a row
template <class T>
__global__ void set_first_tokens(const int32_t* positions, const T* row, Matrix<T> y) {
  const Place at = place_in(y.rows, y.cols);
  if (at.inside && positions[at.row] == 0) y(at.row, at.col) = row ? row[at.col] : T(0.0f);
}

// (x_j, x_{h+j}) ← (x_j cos a − x_{h+j} sin a, x_j sin a + x_{h+j} cos a), a the angle of the position of the row,
// turned back if turn is −1. A thread has a pair of a head.
template <class T>
__global__ void rotary(Matrix<T> x, int64_t head_width, const int32_t* positions, Matrix<const T> table, int turn) {
  const int64_t h = table.cols / 2;
  const Place at = place_in(x.rows, x.cols / head_width * h);
  if (!at.inside) return;
  const int64_t j = at.col % h, first = at.col / h * head_width + j, second = first + h;
  const T* const angle = table.row(positions[at.row]);
  const float cosine = angle[j], sine = float(turn) * angle[h + j], a = x(at.row, first), b = x(at.row, second);
  x(at.row, first) = T(a * cosine - b * sine);
  x(at.row, second) = T(a * sine + b * cosine);
}

// bias(h, e) = table(buckets[e], h)
template <class T>
__global__ void distance_bias(Matrix<const T> table, const int32_t* buckets, Matrix<float> bias) {
  const Place at = place_in(bias.rows, bias.cols);
  if (at.inside) bias(at.row, at.col) = table(buckets[at.col], at.row);
}

// dtable(b, h) += Σ dbias(h, e) over the distances e of bucket b, in order
__global__ void distance_bias_backward(Matrix<const float> dbias, const int32_t* buckets, Matrix<float> dtable) {
  const Place at = place_in(dtable.rows, dtable.cols);
  if (!at.inside) return;
  float sum = dtable(at.row, at.col);
  for (int64_t e = 0; e < dbias.cols; e++)
    if (buckets[e] == at.row) sum += dbias(at.col, e);
  dtable(at.row, at.col) = sum;
}

}  // namespace kernel

namespace {

void embedding(qkv_element e, qkv_matrix E, const int32_t* ids, float scale, qkv_matrix P, const int32_t* positions,
               qkv_matrix y) {
  with_type(e, [&]<class T>(T) {
    launch_elements(y.rows, y.cols, kernel::embedding<T>, matrix<const T>(E), ids, scale, matrix<const T>(P), positions,
                    matrix<T>(y));
  });
}

void add_embedding(qkv_element e, qkv_matrix E, const int32_t* ids, qkv_matrix y) {
  with_type(e, [&]<class T>(T) {
    launch_elements(y.rows, y.cols, kernel::add_embedding<T>, matrix<const T>(E), ids, matrix<T>(y));
  });
}

void embedding_backward(qkv_element e, qkv_matrix dy, const int32_t* ids, float scale, qkv_matrix dE) {
  with_type(e, [&]<class T>(T) {
    launch_warps(dE.rows, kernel::embedding_backward<T>, matrix<const T>(dy), ids, scale, matrix<float>(dE));
  });
}

void set_first_tokens(qkv_element e, const int32_t* positions, const void* row, qkv_matrix y) {
  with_type(e, [&]<class T>(T) {
    launch_elements(y.rows, y.cols, kernel::set_first_tokens<T>, positions, static_cast<const T*>(row), matrix<T>(y));
  });
}

void rotary(qkv_element e, qkv_matrix x, int64_t head_width, const int32_t* positions, qkv_matrix table, int turn) {
  with_type(e, [&]<class T>(T) {
    launch_elements(x.rows, x.cols / head_width * (table.cols / 2), kernel::rotary<T>, matrix<T>(x), head_width,
                    positions, matrix<const T>(table), turn);
  });
}

void distance_bias(qkv_element e, qkv_matrix table, const int32_t* buckets, qkv_matrix bias) {
  with_type(e, [&]<class T>(T) {
    launch_elements(bias.rows, bias.cols, kernel::distance_bias<T>, matrix<const T>(table), buckets,
                    matrix<float>(bias));
  });
}

void distance_bias_backward(qkv_matrix dbias, const int32_t* buckets, qkv_matrix dtable) {
  launch_elements(dtable.rows, dtable.cols, kernel::distance_bias_backward, matrix<const float>(dbias), buckets,
                  matrix<float>(dtable));
}

}  // namespace

void add_embeddings(qkv_device& t) {
  t.embedding = entry<embedding>;
  t.add_embedding = entry<add_embedding>;
  t.embedding_backward = entry<embedding_backward>;
  t.set_first_tokens = entry<set_first_tokens>;
  t.rotary = entry<rotary>;
  t.distance_bias = entry<distance_bias>;
  t.distance_bias_backward = entry<distance_bias_backward>;
}

}  // namespace qkv::cuda
