// Counts of this program's allocations: calls of malloc and related functions, and the bytes that they return.
#pragma once

#include <cstdint>

#include "core/function_ref.h"

namespace qkv::testing {

// Returns the number of allocations while f runs, except those of oneDNN: dnnl_sgemm allocates packed matrices, and no
// memory can be passed to it.
int64_t allocations_of(FunctionRef<void()> f);

// Returns the largest number of bytes that are allocated at a time while f runs, beyond those before it. Mapped files
// do not count.
int64_t peak_bytes_of(FunctionRef<void()> f);

}  // namespace qkv::testing
