// Arguments of qkv/device.h as those of kernels.
#pragma once

#include <cstdint>

#include "qkv/bfloat16.h"
#include "qkv/config.h"
#include "qkv/device.h"
#include "qkv/dropout.h"
#include "qkv/matrix.h"

namespace qkv::cuda {

template <class T>
Matrix<T> matrix(const qkv_matrix& m) {
  return {static_cast<T*>(m.data), m.rows, m.cols, m.stride};
}

inline Dropout dropout_of(const qkv_dropout& d) { return {d.p, d.seed, d.step, d.site}; }

inline Activation activation_of(qkv_activation kind) {
  constexpr Activation kinds[] = {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh};
  return kinds[kind];
}

// Calls f(T()), T the type of the elements.
template <class F>
void with_type(qkv_element e, F&& f) {
  e == QKV_BFLOAT16 ? f(bfloat16()) : f(float());
}

}  // namespace qkv::cuda
