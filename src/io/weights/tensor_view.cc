#include "io/weights/tensor_view.h"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <utility>

#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors in files are little-endian");

struct DTypeInfo {
  std::string_view name;
  uint64_t bytes;         // of one element, or of a block
  uint64_t elements = 1;  // of a block
};

// In the order of DType.
constexpr DTypeInfo kDTypes[] = {
    {"BOOL", 1},        {"U8", 1},          {"I8", 1},         {"U16", 2},       {"I16", 2},       {"F16", 2},
    {"BF16", 2},        {"U32", 4},         {"I32", 4},        {"F32", 4},       {"U64", 8},       {"I64", 8},
    {"F64", 8},         {"Q4_0", 18, 32},   {"Q4_1", 20, 32},  {"Q5_0", 22, 32}, {"Q5_1", 24, 32}, {"Q8_0", 34, 32},
    {"Q4_K", 144, 256}, {"Q5_K", 176, 256}, {"Q6_K", 210, 256}};

const DTypeInfo& info(DType dtype) { return kDTypes[to_size(dtype)]; }

}  // namespace

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kDTypes); i++)
    if (kDTypes[i].name == name && kDTypes[i].elements == 1) return static_cast<DType>(i);
  return {};
}

bool is_in_blocks(DType dtype) { return info(dtype).elements > 1; }

TensorView f32_tensor(std::vector<int64_t> shape, std::span<const float> values) {
  return {DType::f32, std::move(shape), std::as_bytes(values)};
}

bool all_finite(std::span<const float> values) {
  std::atomic<bool> finite = true;
  parallel_blocks(std::ssize(values), 1 << 16, [&](int64_t begin, int64_t end) {
    float nothing = 0;
    for (int64_t i = begin; i < end; i++) nothing += values[to_size(i)] * 0;
    if (nothing != 0) finite = false;  // infinity and NaN times 0 are NaN
  });
  return finite;
}

std::optional<uint64_t> byte_count(DType dtype, std::span<const int64_t> shape) {
  const auto [name, bytes, elements] = info(dtype);
  uint64_t count = bytes;
  for (size_t i = 0; i < shape.size(); i++) {
    const bool last = i + 1 == shape.size();
    if (shape[i] < 0 || (last && static_cast<uint64_t>(shape[i]) % elements != 0)) return {};
    const uint64_t size = static_cast<uint64_t>(shape[i]) / (last ? elements : 1);
    if (__builtin_mul_overflow(count, size, &count)) return {};
  }
  return shape.empty() && elements > 1 ? std::nullopt : std::optional(count);
}

std::string describe(DType dtype, std::span<const int64_t> shape) {
  constexpr size_t kShown = 8;  // a shape from a file may be of any length
  return fmt::format("{} [{}{}]", dtype_name(dtype), fmt::join(shape.first(std::min(shape.size(), kShown)), ", "),
                     shape.size() > kShown ? ", ..." : "");
}

}  // namespace qkv
