// A model in the memory of a device, and the bounds of its rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "device/copies.h"
#include "model/transformer.h"
#include "ops/rows.h"

namespace qkv::testing {

// Up to 14 sublayers round five times on the way forward and as often backward, over sums of at most 13 terms:
// tests/model/gradient_test.cc.
constexpr double kRoundings = 14 * 2 * 5;
inline const double kFloatTolerance = kRoundings * std::sqrt(13) * 0x1p-24;
// Elements of 16 bits are rounded once for each op, and sums are in float32. These roundings are independent, so their
// errors add up like a random walk, whose end is beyond three deviations in one of 400 cases.
inline const double kBfloat16Tolerance = 3 * std::sqrt(kRoundings) * 0x1p-9;

// Returns the path of the device plugin that is tested: the value of QKV_TEST_DEVICE, or this one.
inline std::string tested_plugin(const char* otherwise = QKV_HOST_DEVICE) {
  const char* const given = std::getenv("QKV_TEST_DEVICE");
  return given && *given ? given : otherwise;
}

// The device that is tested, in use for its lifetime.
struct TestDevice {
  Accelerator accelerator{load_device(tested_plugin())};
};

// The host device, in use for its lifetime.
struct HostDevice {
  Accelerator accelerator{load_device(QKV_HOST_DEVICE)};
};

// An arena whose memory on the device is NaN before it is used.
template <class T>
class SpoiledDeviceArena : public Arena {
 public:
  SpoiledDeviceArena() {
    const Scope scope(*this);
    fill<Device<T>>(matrix<Device<T>>(1, 1 << 21), std::numeric_limits<float>::quiet_NaN());
  }
};

template <class T>
std::vector<float> numbers_of(std::span<Device<T>> elements) {
  std::vector<float> numbers(elements.size());
  download(elements.data(), numbers);
  return numbers;
}
template <class T>
std::vector<float> numbers_of(Matrix<Device<T>> m) {
  return numbers_of(std::span(m.data, static_cast<size_t>(m.rows * m.cols)));
}

template <class T>
void set(ParameterList<Device<T>>& parameters, std::span<const float> values) {
  upload(values, parameters.values().data());
}
template <class T>
void clear_gradients(const ParameterList<Device<T>>& parameters) {
  const std::span<Device<float>> g = parameters.gradients();
  fill<Device<float>>({g.data(), 1, std::ssize(g)}, 0);
}

}  // namespace qkv::testing
