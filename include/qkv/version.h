// The version of the library.
#pragma once

#include <string>

namespace [[gnu::visibility("default")]] qkv {

// Returns the version and the active instruction set, such as "qkv 0.1.0 (avx512)". Throws Error if QKV_ISA names an
// instruction set that is unknown or that the machine does not have.
std::string version();

}  // namespace qkv
