// Arguments of qkv/device.h as those of the references. References compute in float; elements of 16 bits are converted
// before, and results after.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/to_size.h"
#include "ops/epilogue.h"
#include "qkv/bfloat16.h"
#include "qkv/config.h"
#include "qkv/device.h"
#include "qkv/dropout.h"
#include "qkv/matrix.h"

namespace qkv::host_device {

inline Dropout dropout_of(const qkv_dropout& d) { return {d.p, d.seed, d.step, d.site}; }
inline Activation activation_of(qkv_activation kind) {
  constexpr Activation kinds[] = {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh};
  return kinds[kind];
}

inline std::span<const int32_t> numbers(const int32_t* p, int64_t count) { return {p, to_size(count)}; }
inline Matrix<float> floats(const qkv_matrix& m) { return {static_cast<float*>(m.data), m.rows, m.cols, m.stride}; }

// A matrix of elements as floats. Changes of a result are written back at the end.
class Floats {
 public:
  enum class Role { input, result };
  Floats(qkv_element element, const qkv_matrix& m, Role role = Role::input) : m_(m), role_(role) {
    narrow_ = element == QKV_BFLOAT16 && m.data;
    if (!narrow_) {
      view_ = host_device::floats(m);
      return;
    }
    // A stride of 0 repeats a row.
    numbers_.resize(to_size(m.rows * m.cols));
    view_ = {numbers_.data(), m.rows, m.cols};
    each([](bfloat16& stored, float& number) { number = stored; });
  }
  ~Floats() {
    if (narrow_ && role_ == Role::result) each([](bfloat16& stored, float& number) { stored = bfloat16(number); });
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  operator Matrix<float>() const { return view_; }
  operator Matrix<const float>() const { return view_; }
  const float* data() const { return view_.data; }
  Matrix<float> matrix() const { return view_; }

 private:
  template <class F>
  void each(F&& f) {
    for (int64_t r = 0; r < m_.rows; r++)
      for (int64_t c = 0; c < m_.cols; c++) f(static_cast<bfloat16*>(m_.data)[r * m_.stride + c], view_(r, c));
  }

  qkv_matrix m_;
  Role role_;
  bool narrow_;
  std::vector<float> numbers_;
  Matrix<float> view_;
};

// A matrix that an op changes.
class Result : public Floats {
 public:
  Result(qkv_element element, const qkv_matrix& m) : Floats(element, m, Role::result) {}
};

// A vector of elements, or null.
class Vector : public Floats {
 public:
  Vector(qkv_element element, const void* p, int64_t count)
      : Floats(element, {const_cast<void*>(p), p ? 1 : 0, count, count}) {}
  operator const float*() const { return data(); }
};

}  // namespace qkv::host_device
