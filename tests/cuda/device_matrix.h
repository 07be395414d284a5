// Matrices in the memory of a device next to the same numbers on the host, for comparisons with the references.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device/copies.h"
#include "tests/device/device_case.h"
#include "tests/support/kernels.h"
#include "tests/support/numeric.h"

namespace qkv::testing {

// The CUDA plugin, in use for its lifetime: in the emulator, or the one that QKV_TEST_DEVICE names.
struct CudaDevice {
  Accelerator accelerator{load_device(tested_plugin(QKV_EMULATED_DEVICE))};
};

// Numbers that elements T hold without rounding.
template <class T>
std::vector<double> representable(int64_t n, uint64_t seed, double scale = 1) {
  std::vector<double> x = normal<double>(n, seed, scale);
  for (double& value : x) value = static_cast<float>(T(value));
  return x;
}

template <class T>
Device<T>* on_device(Arena& arena, const std::vector<double>& x) {
  auto* const to = arena.take<Device<T>>(to_size(std::max<int64_t>(std::ssize(x), 1)));
  upload(cast<float>(x), to);
  return to;
}

// A matrix of a device before whose rows there are `gap` elements: 3, so that the rows are not aligned, or 8. The gaps
// hold numbers that an op which writes there changes.
template <class T>
class DeviceMatrix {
 public:
  DeviceMatrix(Arena& arena, Shape shape, uint64_t seed, int64_t gap = 3)
      : DeviceMatrix(arena, shape, representable<T>(shape.rows * shape.cols, seed), gap) {}
  DeviceMatrix(Arena& arena, Shape shape, std::vector<double> numbers, int64_t gap = 3)
      : shape_(shape), gap_(gap), numbers_(std::move(numbers)) {
    std::vector<double> all(to_size(gap_ + shape.rows * stride()), kUntouched);
    for (int64_t r = 0; r < shape.rows; r++)
      for (int64_t c = 0; c < shape.cols; c++) all[to_size(gap_ + r * stride() + c)] = host()(r, c);
    data_ = on_device<T>(arena, all);
  }

  // The same numbers, on the device and on the host.
  Matrix<Device<T>> view() const { return {data_ + gap_, shape_.rows, shape_.cols, stride()}; }
  Matrix<double> host() { return {numbers_.data(), shape_.rows, shape_.cols}; }

  // Expects that the device has the numbers of the host, within this error of the norm.
  void expect_host(double tolerance) {
    const std::vector<float> all = numbers_of(std::span(data_, to_size(gap_ + shape_.rows * stride())));
    std::vector<float> found;
    for (int64_t i = 0; i < std::ssize(all); i++) {
      const int64_t col = (i - gap_) % stride();
      if (i >= gap_ && col < shape_.cols)
        found.push_back(all[to_size(i)]);
      else
        EXPECT_EQ(all[to_size(i)], kUntouched);
    }
    EXPECT_LE(relative_error(found, numbers_), tolerance);
  }

 private:
  static constexpr float kUntouched = 776;  // of 7 bits
  int64_t stride() const { return shape_.cols + gap_; }

  Shape shape_;
  int64_t gap_;
  std::vector<double> numbers_;
  Device<T>* data_;
};

// An element is rounded once, and sums are in float32. A sum of n terms that follow each other is off by about √n
// roundings of its terms; where the terms cancel, and in functions such as exp, by several times of that.
template <class T>
double tolerance_of(int64_t n = 1) {
  const double rounding = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-8;
  return rounding + 8 * std::sqrt(static_cast<double>(n)) * 0x1p-24;
}

// Calls f(T()) for both types of elements.
template <class F>
void for_each_element(F&& f) {
  {
    SCOPED_TRACE("float32");
    f(float());
  }
  SCOPED_TRACE("bfloat16");
  f(bfloat16());
}

// Around the sizes of warps, tiles and groups of dropout.
inline std::vector<Shape> device_shapes() {
  return {{0, 5}, {1, 1}, {3, 31}, {5, 32}, {2, 33}, {65, 17}, {7, 130}, {66, 129}};
}

}  // namespace qkv::testing
