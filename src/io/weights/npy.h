// NumPy's .npy format of one array.
//
//   "\x93NUMPY" major:u8 minor:u8 size header data            size: u16 in version 1, u32 in version 2 and 3
//   header = {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    a dictionary of Python, in any order
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "io/weights/tensor_view.h"

namespace qkv {

// Returns the array, which refers to the bytes. Throws Error, beginning with `where`, unless it has numbers in
// row-major order and little-endian, of the size of its data.
TensorView parse_npy(std::span<const std::byte> bytes, const std::string& where);

}  // namespace qkv
