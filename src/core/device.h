// Elements in the memory of a device. The host can neither read, make nor copy one, so the compiler proves that only
// the ops touch numbers: layers and models are the same text for every kind of memory.
#pragma once

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

// Numbers of the host, such as a scale or an ε.
template <class T>
struct ArithmeticOf<Device<T>> {
  using type = Arithmetic<T>;
};
template <class T>
struct StatisticOf<Device<T>> {
  using type = Device<Statistic<T>>;
};

}  // namespace qkv
