// Tiles of Intel AMX: registers of 16 rows of 64 bytes, and products of bytes in them. Kernels of "avx512" use them
// where the machine has them (core/system/isa.h). They are assembly because compilers accept their own functions for
// AMX only in code that is built for it.
#pragma once

#include <cstdint>

namespace qkv {

// Makes the eight tiles usable on this thread while it lives.
class AmxTiles {
 public:
  AmxTiles() { asm volatile("ldtilecfg %0" : : "m"(kShapes)); }
  ~AmxTiles() { asm volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

 private:
  struct alignas(64) Shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  static constexpr Shapes kShapes = {1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
};

template <int kTile>
void amx_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

// `stride` is the distance of rows in bytes.
template <int kTile>
void amx_load(const void* from, int64_t stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(from), "r"(stride) : "memory");
}

template <int kTile>
void amx_store(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(to), "r"(stride) : "memory");
}

// Adds to (r, c), 32-bit integers, the sum over g < 16 and i < 4 of a(r, 4 g + i) · b(g, 4 c + i), where a has signed
// and b unsigned bytes.
template <int kTo, int kA, int kB>
void amx_add_products() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kTo), "i"(kA), "i"(kB));
}

}  // namespace qkv
