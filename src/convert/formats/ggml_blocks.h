// The quantized types of GGUF: blocks of numbers with 4, 5, 6 or 8 bits each and common scales.
//
//   32 numbers, d and m in float16:
//     q4_0  d, 16 bytes                   (q − 8) d
//     q4_1  d, m, 16 bytes                q d + m
//     q5_0  d, 4 bytes, 16 bytes          (q − 16) d
//     q5_1  d, m, 4 bytes, 16 bytes       q d + m
//     q8_0  d, 32 bytes                   q d
//   256 numbers, d and m in float16, and a scale s (and an offset o) for each 16 or 32 of them:
//     q4_k  d, m, 12 bytes, 128 bytes               q (d s) − m o
//     q5_k  d, m, 12 bytes, 32 bytes, 128 bytes     q (d s) − m o
//     q6_k  128 bytes, 64 bytes, 16 bytes, d        (q − 32) (d s)
//
// The results have the bits of those of the Python package gguf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/weights/tensor_view.h"

namespace qkv {

// Reads the numbers [first, first + to.size()) of a tensor of such a type; they must lie inside the data.
void read_blocks(DType dtype, std::span<const std::byte> data, int64_t first, std::span<float> to);

}  // namespace qkv
