// Numbers of any stored type as float32.
#include <bit>
#include <cmath>
#include <cstring>

#include "core/fail.h"
#include "import/foreign_tensors.h"
#include "qkv/bfloat16.h"

namespace qkv {
namespace {

// IEEE 754 binary16.
struct float16 {
  uint16_t bits;

  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
                   mantissa = bits & 1023;
    if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), sign ? -1.0f : 1.0f);
    const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
  }
};

template <class T>
T load(std::span<const std::byte> bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void convert(const Origin& origin, std::span<float> to) {
  for (size_t i = 0; i < to.size(); i++) to[i] = static_cast<float>(load<T>(origin.values.data, i));
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
