// NumPy's .npz format: a zip archive of arrays that are stored without compression.
//
//   NAME.npy = "\x93NUMPY" major:u8 minor:u8 size header data       size: u16 in version 1, u32 in version 2 and 3
//   header   = {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    a dictionary of Python, in any order
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
