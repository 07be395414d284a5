// Which instruction set the kernels use: the best the machine has, or what the environment variable QKV_ISA asks for.
#pragma once

#include <string>
#include <vector>

namespace qkv {

// "avx512", "avx2", "neon" or "portable". The first call reads QKV_ISA; throws Error if it names a set that is unknown
// or that the machine lacks.
std::string active_isa();

// All sets that this machine can run, best first.
std::vector<std::string> available_isas();

// Makes every later kernel call use this set (for tests). Throws Error as active_isa() does. Not thread-safe.
void force_isa(const std::string& name);

// Whether the machine multiplies 8-bit integers in one instruction (AVX512-VNNI), which kernels of "avx512" may use.
bool has_vnni();
void force_vnni(bool use);  // for tests: false does without

// The same of products of tiles of 8-bit integers (AMX-INT8).
bool has_amx();
void force_amx(bool use);

// The same of products of bfloat16 (AVX512-BF16).
bool has_bfloat16_products();
void force_bfloat16_products(bool use);

// Calls the kernel built for the active set. `kernel` was made known with HWY_EXPORT.
#define QKV_DISPATCH(kernel) (::qkv::choose_isa(), HWY_DYNAMIC_DISPATCH(kernel))
void choose_isa();

}  // namespace qkv
