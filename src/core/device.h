// Elements in the memory of a device. The host can neither read, make nor copy one, so the compiler proves that only
// the ops touch numbers: layers and models are the same text for every kind of memory.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "qkv/bfloat16.h"

namespace qkv {

// An element that is stored as T.
template <class T>
class Device {
 public:
  Device() = delete;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

 private:
  T value_;
};

template <class T>
constexpr bool kOnDevice = false;
template <class T>
constexpr bool kOnDevice<Device<T>> = true;
template <class T>
constexpr bool kOnDevice<const Device<T>> = true;

// Numbers of the host, such as a scale or an ε.
template <class T>
struct ArithmeticOf<Device<T>> {
  using type = Arithmetic<T>;
};
template <class T>
struct StatisticOf<Device<T>> {
  using type = Device<Statistic<T>>;
};

// The integers of a batch, which the ops of a pass read many times. On the host, nothing happens.
template <class Real>
class Uploaded {
 public:
  explicit Uploaded(std::initializer_list<std::span<const int32_t>>) {}
};

// Copies them to the device once, for the ops that read them, or parts of them, while this exists. They must not
// change.
template <class T>
class Uploaded<Device<T>> {
 public:
  explicit Uploaded(std::initializer_list<std::span<const int32_t>> numbers);
  ~Uploaded();
  Uploaded(const Uploaded&) = delete;
  Uploaded& operator=(const Uploaded&) = delete;

 private:
  class Copies;
  std::unique_ptr<Copies> copies_;
};

// Calls a macro for all elements. The host has float for training and inference, and double for what the float kernels
// are compared with.
#define QKV_FOR_EACH_ELEMENT(X) \
  X(float)                      \
  X(double)                     \
  X(Device<float>)              \
  X(Device<bfloat16>)

// Instantiates a class template for all of them: QKV_FOR_ELEMENTS(template class Linear).
#define QKV_FOR_ELEMENTS(CLASS) \
  CLASS<float>;                 \
  CLASS<double>;                \
  CLASS<Device<float>>;         \
  CLASS<Device<bfloat16>>

}  // namespace qkv
