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

enum class DType { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };
std::string_view dtype_name(DType dtype);  // as safetensors spells it: "F32"
std::optional<DType> dtype_from_name(std::string_view name);

// A view of a tensor's bytes (row-major, little-endian). They may be unaligned: copy them before computing with them.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

// Returns a view of float32 values; their number is the product of the shape.
TensorView f32_tensor(std::vector<int64_t> shape, std::span<const float> values);

bool all_finite(std::span<const float> values);

// Returns the number of bytes of a tensor; nothing if a size is negative or the product overflows.
std::optional<uint64_t> byte_count(DType dtype, std::span<const int64_t> shape);

// Returns "F32 [2, 3]", for errors.
std::string describe(DType dtype, std::span<const int64_t> shape);

}  // namespace qkv
