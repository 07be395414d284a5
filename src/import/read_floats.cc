// Numbers of any stored type as float32.
#include <cmath>
#include <cstring>

#include "core/fail.h"
#include "import/foreign_tensors.h"
#include "io/float16.h"
#include "qkv/bfloat16.h"

namespace qkv {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void convert(const Origin& origin, std::span<float> to) {
  if (origin.columns == 0) {
    for (size_t i = 0; i < to.size(); i++) to[i] = static_cast<float>(load<T>(origin.values.data, i));
    return;
  }
  const size_t rows = static_cast<size_t>(origin.values.shape[0]), cols = to.size() / rows;
  for (size_t c = 0; c < cols; c++)
    for (size_t r = 0; r < rows; r++)
      to[r * cols + c] = static_cast<float>(load<T>(origin.values.data, c * static_cast<size_t>(origin.columns) + r));
}

// value = integer / scale of its row
template <class T>
void dequantise(const Origin& origin, std::span<float> to) {
  const size_t rows = static_cast<size_t>(origin.values.shape[0]), cols = rows == 0 ? 0 : to.size() / rows;
  const bool one = origin.scales.size() == sizeof(float);
  for (size_t r = 0; r < rows; r++) {
    const float scale = load<float>(origin.scales, one ? 0 : r);
    for (size_t c = 0; c < cols; c++)
      to[r * cols + c] = static_cast<float>(load<T>(origin.values.data, r * cols + c)) / scale;
  }
}

}  // namespace

void read_floats(const Origin& origin, const std::string& path, std::span<float> to) {
  switch (origin.values.dtype) {
    case DType::f64:
      convert<double>(origin, to);
      break;
    case DType::f16:
      convert<float16>(origin, to);
      break;
    case DType::bf16:
      convert<bfloat16>(origin, to);
      break;
    case DType::i16:
      dequantise<int16_t>(origin, to);
      break;
    case DType::i8:
      dequantise<int8_t>(origin, to);
      break;
    default:
      convert<float>(origin, to);
  }
  for (const float x : to)
    if (!std::isfinite(x)) fail("{}: holds a number that is not finite", in_file(path, origin.name));
}

}  // namespace qkv
