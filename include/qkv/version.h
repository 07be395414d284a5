// What this library is.
#pragma once

#include <string>

namespace qkv {

// Version and active instruction set, e.g. "qkv 0.1.0 (avx512)". Throws Error if QKV_ISA names a set that is unknown or
// that the machine lacks.
std::string version();

}  // namespace qkv
