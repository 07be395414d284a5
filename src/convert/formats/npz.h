// NumPy's .npz format: a zip archive of arrays (io/weights/npy.h) that are stored without compression.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "io/weights/tensor_view.h"

namespace qkv {

// Returns the arrays of an archive by name, without ".npy". They refer to the bytes. Throws Error, naming file and
// array, unless all members are arrays of numbers in row-major order and little-endian whose sizes match their data.
std::map<std::string, TensorView> parse_npz(std::span<const std::byte> bytes, const std::string& path);

}  // namespace qkv
