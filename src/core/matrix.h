// Matrices, and calls for each finished block of one.
#pragma once

#include "core/function_ref.h"
#include "qkv/matrix.h"

namespace qkv {

// Called for each block of a result as soon as it is complete, on the thread that computed it. Blocks begin at columns
// that are multiples of 128.
using AfterBlock = FunctionRef<void(const Block&)>;

}  // namespace qkv
