// The work on each number of the result of a product before it is rounded: ops/epilogue.h.
#pragma once

#include <cmath>

#include "arguments.h"
#include "launch.h"
#include "ops/reference/activation_reference.h"

namespace qkv::cuda {

template <class T>
struct Epilogue {
  qkv_epilogue_kind kind;
  Activation activation;
  Dropout dropout;
  Matrix<T> other;
  float cap;

  explicit Epilogue(const qkv_epilogue& e)
      : kind(e.kind),
        activation(activation_of(e.activation)),
        dropout(dropout_of(e.dropout)),
        other(matrix<T>(e.other)),
        cap(e.cap) {}

  // Assigns result(r, c), given its number z:
  //   QKV_NO_EPILOGUE          z
  //   QKV_ACTIVATION           z, and dropout(φ(z)) to `other`, which may be the result
  //   QKV_ACTIVATION_BACKWARD  φ'(x) dropout(z), x = other
  //   QKV_SOFTCAP              cap tanh(z / cap)
  __device__ void assign(Matrix<T> result, int64_t r, int64_t c, float z) const {
    const float factor = reference::dropout_factor<float>(dropout, r, c);
    if (kind == QKV_ACTIVATION_BACKWARD) {
      z = reference::activation_slope<float>(activation, other(r, c)) * (z * factor);
    } else if (kind == QKV_SOFTCAP) {
      z = cap * std::tanh(z / cap);
    }
    result(r, c) = T(z);
    if (kind == QKV_ACTIVATION) other(r, c) = T(reference::activation_value<float>(activation, z) * factor);
  }
};

}  // namespace qkv::cuda
