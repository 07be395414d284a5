// Copies of numbers between the host and the device.
#pragma once

#include <span>

#include "core/device.h"

namespace qkv {

// Copies float32 numbers to elements of the device, each rounded to nearest if T is narrower.
template <class T>
void upload(std::span<const float> from, Device<T>* to);

// Waits for all commands, and copies elements of the device to the host.
template <class T>
void download(const Device<T>* from, std::span<float> to);

}  // namespace qkv
