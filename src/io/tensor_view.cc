#include "io/tensor_view.h"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <utility>

#include "core/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors in files are little-endian");

struct DTypeInfo {
  std::string_view name;
  uint64_t bytes;  // of one element
};

// In the order of DType.
constexpr DTypeInfo kDTypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"U16", 2}, {"I16", 2}, {"F16", 2}, {"BF16", 2},
                                 {"U32", 4},  {"I32", 4}, {"F32", 4}, {"U64", 8}, {"I64", 8}, {"F64", 8}};

const DTypeInfo& info(DType dtype) { return kDTypes[to_size(dtype)]; }

}  // namespace

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kDTypes); i++)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return {};
}

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
  uint64_t count = info(dtype).bytes;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(size), &count)) return {};
  return count;
}

std::string describe(DType dtype, std::span<const int64_t> shape) {
  constexpr size_t kShown = 8;  // a shape from a file may be of any length
  return fmt::format("{} [{}{}]", dtype_name(dtype), fmt::join(shape.first(std::min(shape.size(), kShown)), ", "),
                     shape.size() > kShown ? ", ..." : "");
}

}  // namespace qkv
