// A tensor in a file: type, shape and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// The types of safetensors, and then those of GGUF, whose numbers are in blocks (ggml_blocks.h).
// clang-format off
enum class DType {
  boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64,
  q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k
};
// clang-format on
std::string_view dtype_name(DType dtype);  // as safetensors and GGUF spell it: "F32", "Q4_K"
// Returns the type of safetensors with this name; nothing if there is none.
std::optional<DType> dtype_from_name(std::string_view name);
bool is_in_blocks(DType dtype);  // whether it is one of GGUF's

// A view of a tensor's bytes (row-major, little-endian). They may be unaligned: copy them before computing with them.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

// Returns a view of float32 values; their number is the product of the shape.
TensorView f32_tensor(std::vector<int64_t> shape, std::span<const float> values);

bool all_finite(std::span<const float> values);

// Returns the number of bytes of a tensor; nothing if a size is negative, the product overflows, or the last size is
// not a multiple of the block.
std::optional<uint64_t> byte_count(DType dtype, std::span<const int64_t> shape);

// Returns "F32 [2, 3]", for errors.
std::string describe(DType dtype, std::span<const int64_t> shape);

}  // namespace qkv
