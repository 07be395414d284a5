// Activations, dropout and softcap, element by element: ops/activation.h, ops/dropout.h, ops/softcap.h.
#include "arguments.h"
#include "epilogue.h"
#include "grid.h"
#include "ops/reference/activation_reference.h"
#include "table.h"

namespace qkv::cuda {
namespace kernel {

// result = epilogue(result)
template <class T>
__global__ void apply(Epilogue<T> epilogue, Matrix<T> result) {
  const Place at = place_in(result.rows, result.cols);
  if (at.inside) epilogue.assign(result, at.row, at.col, result(at.row, at.col));
}

// y = dropout(φ(a) ∘ b), x = [a b]
template <class T>
__global__ void gated_activation(Activation kind, Matrix<const T> x, Dropout drop, Matrix<T> y) {
  const Place at = place_in(y.rows, y.cols);
  if (!at.inside) return;
  const float a = x(at.row, at.col), b = x(at.row, y.cols + at.col);
  y(at.row, at.col) =
      T(reference::activation_value(kind, a) * b * reference::dropout_factor<float>(drop, at.row, at.col));
}

// dx = [φ'(a) ∘ b ∘ d, φ(a) ∘ d], d = dropout(dy)
template <class T>
__global__ void gated_activation_backward(Activation kind, Matrix<const T> x, Matrix<const T> dy, Dropout drop,
                                          Matrix<T> dx) {
  const Place at = place_in(dy.rows, dy.cols);
  if (!at.inside) return;
  const float a = x(at.row, at.col), b = x(at.row, dy.cols + at.col);
  const float d = dy(at.row, at.col) * reference::dropout_factor<float>(drop, at.row, at.col);
  dx(at.row, at.col) = T(reference::activation_slope(kind, a) * b * d);
  dx(at.row, dy.cols + at.col) = T(reference::activation_value(kind, a) * d);
}

// y = dropout(x)
template <class T>
__global__ void dropout(Matrix<const T> x, Dropout drop, Matrix<T> y) {
  const Place at = place_in(x.rows, x.cols);
  if (at.inside) y(at.row, at.col) = T(x(at.row, at.col) * reference::dropout_factor<float>(drop, at.row, at.col));
}

// y = x + dropout(f)
template <class T>
__global__ void add_dropout(Matrix<const T> x, Matrix<const T> f, Dropout drop, Matrix<T> y) {
  const Place at = place_in(x.rows, x.cols);
  if (!at.inside) return;
  const float factor = reference::dropout_factor<float>(drop, at.row, at.col);
  y(at.row, at.col) = T(x(at.row, at.col) + f(at.row, at.col) * factor);
}

// dz = dy (1 − (y / cap)²), in place
template <class T>
__global__ void softcap_backward(Matrix<const T> y, float cap, Matrix<T> d) {
  const Place at = place_in(y.rows, y.cols);
  if (!at.inside) return;
  const float t = y(at.row, at.col) / cap;
  d(at.row, at.col) = T(d(at.row, at.col) * (1 - t * t));
}

}  // namespace kernel

namespace {

void apply(qkv_element e, const qkv_epilogue* epilogue, qkv_matrix result) {
  if (epilogue->kind == QKV_NO_EPILOGUE) return;
  with_type(e, [&]<class T>(T) {
    launch_elements(result.rows, result.cols, kernel::apply<T>, Epilogue<T>(*epilogue), matrix<T>(result));
  });
}

void gated_activation(qkv_element e, qkv_activation kind, qkv_matrix x, qkv_dropout drop, qkv_matrix y) {
  with_type(e, [&]<class T>(T) {
    launch_elements(y.rows, y.cols, kernel::gated_activation<T>, activation_of(kind), matrix<const T>(x),
                    dropout_of(drop), matrix<T>(y));
  });
}

void gated_activation_backward(qkv_element e, qkv_activation kind, qkv_matrix x, qkv_matrix dy, qkv_dropout drop,
                               qkv_matrix dx) {
  with_type(e, [&]<class T>(T) {
    launch_elements(dy.rows, dy.cols, kernel::gated_activation_backward<T>, activation_of(kind), matrix<const T>(x),
                    matrix<const T>(dy), dropout_of(drop), matrix<T>(dx));
  });
}

void dropout(qkv_element e, qkv_matrix x, qkv_dropout drop, qkv_matrix y) {
  with_type(e, [&]<class T>(T) {
    launch_elements(x.rows, x.cols, kernel::dropout<T>, matrix<const T>(x), dropout_of(drop), matrix<T>(y));
  });
}

void add_dropout(qkv_element e, qkv_matrix x, qkv_matrix f, qkv_dropout drop, qkv_matrix y) {
  with_type(e, [&]<class T>(T) {
    launch_elements(x.rows, x.cols, kernel::add_dropout<T>, matrix<const T>(x), matrix<const T>(f), dropout_of(drop),
                    matrix<T>(y));
  });
}

void softcap_backward(qkv_element e, qkv_matrix y, float cap, qkv_matrix d) {
  with_type(e, [&]<class T>(T) {
    launch_elements(y.rows, y.cols, kernel::softcap_backward<T>, matrix<const T>(y), cap, matrix<T>(d));
  });
}

}  // namespace

void add_elements(qkv_device& t) {
  t.apply = entry<apply>;
  t.gated_activation = entry<gated_activation>;
  t.gated_activation_backward = entry<gated_activation_backward>;
  t.dropout = entry<dropout>;
  t.add_dropout = entry<add_dropout>;
  t.softcap_backward = entry<softcap_backward>;
}

}  // namespace qkv::cuda
