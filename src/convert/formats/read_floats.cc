// The numbers of an origin as float32, whatever the type they are stored in.
#include <algorithm>
#include <bit>
#include <cstring>

#include "convert/formats/foreign_tensors.h"
#include "convert/formats/ggml_blocks.h"
#include "core/fail.h"
#include "core/float16.h"
#include "core/to_size.h"
#include "qkv/bfloat16.h"

namespace qkv {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + to_size(i) * sizeof(T), sizeof(T));
  return value;
}

// Rows [begin, end) of a parameter, `cols` numbers each.
struct Part {
  const Origin& origin;
  int64_t begin, end, cols;
  float* to;

  float& at(int64_t row, int64_t col) const { return to[(row - begin) * cols + col]; }
};

// Converts numbers in blocks on the stack, which the compiler vectorizes.
template <class T>
void widen(std::span<const std::byte> from, float* to) {
  constexpr size_t kSpan = 256;
  T block[kSpan];
  float wide[kSpan];
  for (; from.size() >= sizeof block; from = from.subspan(sizeof block), to += kSpan) {
    std::memcpy(block, from.data(), sizeof block);
    for (size_t i = 0; i < kSpan; i++) wide[i] = static_cast<float>(block[i]);
    std::memcpy(to, wide, sizeof wide);
  }
  for (size_t i = 0; i < from.size() / sizeof(T); i++)
    to[i] = static_cast<float>(load<T>(from, static_cast<int64_t>(i)));
}

template <>
void widen<float>(std::span<const std::byte> from, float* to) {
  std::memcpy(to, from.data(), from.size());
}

template <class T>
void convert_rows(const Part& part) {
  const size_t row = to_size(part.cols) * sizeof(T);
  for (int64_t r = part.begin; r < part.end; r++)
    widen<T>(part.origin.tensor.data.subspan(to_size(part.origin.rows.of(r)) * row, row), &part.at(r, 0));
}

// Transposes in squares, so that what is read and written of a square stays in the first-level cache.
template <class T>
void convert_columns(const Part& part) {
  constexpr int64_t kSide = 16;
  const int64_t width = part.origin.tensor.shape[1];
  for (int64_t r0 = part.begin; r0 < part.end; r0 += kSide)
    for (int64_t c0 = 0; c0 < part.cols; c0 += kSide)
      for (int64_t r = r0; r < std::min(r0 + kSide, part.end); r++) {
        const int64_t column = part.origin.rows.of(r);
        for (int64_t c = c0; c < std::min(c0 + kSide, part.cols); c++)
          part.at(r, c) = static_cast<float>(load<T>(part.origin.tensor.data, c * width + column));
      }
}

template <class T>
void convert(const Part& part) {
  part.origin.transposed ? convert_columns<T>(part) : convert_rows<T>(part);
}

// value = integer / scale of its row
template <class T>
void dequantize(const Part& part) {
  convert_rows<T>(part);
  const std::span<const std::byte> scales = part.origin.scales;
  const bool one = scales.size() == sizeof(float);
  for (int64_t r = part.begin; r < part.end; r++) {
    const float scale = load<float>(scales, one ? 0 : part.origin.rows.of(r));
    for (int64_t c = 0; c < part.cols; c++) part.at(r, c) /= scale;
  }
}

void convert_blocks(const Part& part) {
  const TensorView& tensor = part.origin.tensor;
  for (int64_t r = part.begin; r < part.end; r++)
    read_blocks(tensor.dtype, tensor.data, part.origin.rows.of(r) * part.cols,
                std::span(&part.at(r, 0), to_size(part.cols)));
}

void convert_any(const Part& part) {
  if (is_in_blocks(part.origin.tensor.dtype)) return convert_blocks(part);
  switch (part.origin.tensor.dtype) {
    case DType::f64:
      return convert<double>(part);
    case DType::f16:
      return convert<float16>(part);
    case DType::bf16:
      return convert<bfloat16>(part);
    case DType::i16:
      return dequantize<int16_t>(part);
    case DType::i8:
      return dequantize<int8_t>(part);
    default:
      return convert<float>(part);
  }
}

// Whether no number is infinite or NaN. Blocks without a branch inside are vectorized.
bool are_finite(std::span<const float> numbers) {
  constexpr size_t kSpan = 256;
  constexpr uint32_t kExponent = 0x7f800000;
  for (size_t i = 0; i < numbers.size(); i += kSpan) {
    uint32_t bad = 0;
    for (const float x : numbers.subspan(i, std::min(kSpan, numbers.size() - i)))
      bad |= (std::bit_cast<uint32_t>(x) & kExponent) == kExponent;
    if (bad) return false;
  }
  return true;
}

}  // namespace

void read_floats(const Origin& origin, const std::string& path, int64_t begin, int64_t end, std::span<float> to) {
  if (origin.tensor.data.empty()) return void(std::ranges::fill(to, 0.0F));
  const Part part{origin, begin, end, std::ssize(to) / (end - begin), to.data()};
  convert_any(part);
  if (!are_finite(to)) fail("{}: holds a number that is not finite", in_file(path, origin.name));
  if (origin.factor != 1)
    for (float& x : to) x = static_cast<float>(x * origin.factor);
  if (origin.offset != 0)
    for (float& x : to) x += origin.offset;
  if (!origin.addend) return;
  std::vector<float> row(to_size(part.cols));
  read_floats(*origin.addend, path, 0, 1, row);
  for (int64_t r = begin; r < end; r++)
    for (int64_t c = 0; c < part.cols; c++) part.at(r, c) += row[to_size(c)];
}

}  // namespace qkv
