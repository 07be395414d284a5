// Tensors of a file that are used as one array.
#pragma once

#include <cstddef>
#include <span>

#include "core/arena.h"

namespace qkv {

// Returns the first byte of all parts, one after the other: in the file if each begins where the previous one ends,
// else in a copy. `parts` must not be empty.
const std::byte* in_one_piece(std::span<const std::span<const std::byte>> parts, Arena& copy);

}  // namespace qkv
