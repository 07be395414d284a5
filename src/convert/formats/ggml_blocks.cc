#include "convert/formats/ggml_blocks.h"

#include <algorithm>
#include <cstring>

#include "core/float16.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int kSmallBlock = 32, kLargeBlock = 256;

float half_at(const uint8_t* bytes) {
  float16 value;
  std::memcpy(&value.bits, bytes, sizeof value.bits);
  return value;
}

uint32_t bits_at(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// The low halves of 16 bytes are the first 16 numbers, the high halves the others. `high` has a fifth bit of each.
int small_number(const uint8_t* nibbles, uint32_t high, int i) {
  const int low = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
  return low | static_cast<int>(high >> i & 1) << 4;
}

void read_centred(const uint8_t* nibbles, uint32_t high, int centre, float d, float* to) {
  for (int i = 0; i < kSmallBlock; i++) to[i] = d * static_cast<float>(small_number(nibbles, high, i) - centre);
}

void read_offset(const uint8_t* nibbles, uint32_t high, float d, float m, float* to) {
  for (int i = 0; i < kSmallBlock; i++) {
    const float product = d * static_cast<float>(small_number(nibbles, high, i));
    to[i] = product + m;
  }
}

void read_bytes(const uint8_t* bytes, float d, float* to) {
  for (int i = 0; i < kSmallBlock; i++) to[i] = static_cast<float>(static_cast<int8_t>(bytes[i])) * d;
}

// The six bits of scale i and offset i, 0 <= i < 8: the first four of each are in bytes of their own, whose two highest
// bits are those of the last four.
struct ScaleAndOffset {
  float scale, offset;

  ScaleAndOffset(const uint8_t* packed, int i) {
    const uint8_t *scales = packed, *offsets = packed + 4, *low = packed + 8;
    const int j = i % 4;
    scale = static_cast<float>(i < 4 ? scales[j] & 63 : (low[j] & 15) | (scales[j] >> 6) << 4);
    offset = static_cast<float>(i < 4 ? offsets[j] & 63 : low[j] >> 4 | (offsets[j] >> 6) << 4);
  }
};

// Eight groups of 32 numbers; two groups share 32 bytes. `high` has 32 bytes with a fifth bit of each, or is null.
void read_groups(const uint8_t* block, const uint8_t* high, const uint8_t* nibbles, float* to) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int group = 0; group < 8; group++, to += 32) {
    const ScaleAndOffset own(block + 4, group);
    const float scale = d * own.scale, offset = m * own.offset;
    const uint8_t* bytes = nibbles + group / 2 * 32;
    for (int i = 0; i < 32; i++) {
      const int low = group % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4, fifth = high ? high[i] >> group & 1 : 0;
      const float product = scale * static_cast<float>(low | fifth << 4);
      to[i] = product - offset;
    }
  }
}

// Two halves of 128 numbers: 64 bytes with the low four bits of two numbers each, 32 bytes with the high two bits of
// four numbers each; a signed scale for 16 numbers.
void read_six_bits(const uint8_t* block, float* to) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const float d = half_at(block + 208);
  for (int i = 0; i < kLargeBlock; i++) {
    const int half = i / 128, place = i % 128;
    const int nibble = low[half * 64 + place % 64] >> (place / 64 * 4) & 15;
    const int top = high[half * 32 + place % 32] >> (place / 32 * 2) & 3;
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    to[i] = scale * static_cast<float>((nibble | top << 4) - 32);
  }
}

void read_block(DType dtype, const uint8_t* block, float* to) {
  switch (dtype) {
    case DType::q4_0:
      return read_centred(block + 2, 0, 8, half_at(block), to);
    case DType::q4_1:
      return read_offset(block + 4, 0, half_at(block), half_at(block + 2), to);
    case DType::q5_0:
      return read_centred(block + 6, bits_at(block + 2), 16, half_at(block), to);
    case DType::q5_1:
      return read_offset(block + 8, bits_at(block + 4), half_at(block), half_at(block + 2), to);
    case DType::q8_0:
      return read_bytes(block + 2, half_at(block), to);
    case DType::q4_k:
      return read_groups(block, nullptr, block + 16, to);
    case DType::q5_k:
      return read_groups(block, block + 16, block + 48, to);
    default:
      return read_six_bits(block, to);
  }
}

}  // namespace

void read_blocks(DType dtype, std::span<const std::byte> data, int64_t first, std::span<float> to) {
  const int64_t size = dtype >= DType::q4_k ? kLargeBlock : kSmallBlock;
  const size_t bytes = *byte_count(dtype, {&size, 1});
  float block[kLargeBlock];
  for (size_t done = 0; done < to.size();) {
    const int64_t at = first + static_cast<int64_t>(done), begin = at % size;
    const size_t count = std::min(to_size(size - begin), to.size() - done);
    const auto* from = reinterpret_cast<const uint8_t*>(data.data()) + to_size(at / size) * bytes;
    const bool whole = std::ssize(to.subspan(done)) >= size && begin == 0;
    read_block(dtype, from, whole ? to.data() + done : block);
    if (!whole) std::copy_n(block + begin, count, to.data() + done);
    done += count;
  }
}

}  // namespace qkv
