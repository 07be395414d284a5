// Arguments of the ops in the form of qkv/device.h.
#pragma once

#include "core/device.h"
#include "device/accelerator.h"
#include "ops/epilogue.h"
#include "qkv/attention.h"
#include "qkv/config.h"
#include "qkv/device.h"
#include "qkv/dropout.h"
#include "qkv/matrix.h"

// Instantiates something for all elements of devices.
#define QKV_FOR_DEVICE_ELEMENTS(X) \
  X(Device<float>)                 \
  X(Device<bfloat16>)

namespace qkv {

using Command = Accelerator::Command;

template <class T>
constexpr qkv_element kElement = QKV_FLOAT32;
template <>
inline constexpr qkv_element kElement<Device<bfloat16>> = QKV_BFLOAT16;

template <class T>
void* raw(const T* elements) {
  return const_cast<T*>(elements);
}
template <class T>
float* floats(const Device<T>* elements) {
  static_assert(std::is_same_v<T, float>);
  return static_cast<float*>(raw(elements));
}
template <class T>
qkv_matrix raw(Matrix<T> m) {
  return {raw(m.data), m.rows, m.cols, m.stride};
}
inline qkv_dropout raw(const Dropout& d) { return {d.p, d.seed, d.step, d.site}; }

inline qkv_activation raw(Activation kind) {
  switch (kind) {
    case Activation::relu:
      return QKV_RELU;
    case Activation::gelu:
      return QKV_GELU;
    case Activation::silu:
      return QKV_SILU;
    case Activation::gelu_tanh:
      return QKV_GELU_TANH;
  }
  return QKV_RELU;
}

template <class Real>
qkv_epilogue raw(const Epilogue<Real>& e) {
  using Kind = typename Epilogue<Real>::Kind;
  switch (e.kind()) {
    case Kind::none:
      break;
    case Kind::activation:
      return {QKV_ACTIVATION, raw(e.function()), raw(e.drop()), raw(e.y()), 0};
    case Kind::activation_backward:
      return {QKV_ACTIVATION_BACKWARD, raw(e.function()), raw(e.drop()), raw(e.x()), 0};
    case Kind::softcap:
      return {QKV_SOFTCAP, QKV_RELU, {}, {}, e.cap()};
  }
  return {};
}

}  // namespace qkv
