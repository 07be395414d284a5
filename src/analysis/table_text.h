// Cells of the tables of analyses in a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace qkv {

inline constexpr size_t kTableLine = 100, kTableMargin = 12;  // columns of a line, and of the names of its rows

// Returns the name of hidden states: "embeddings" for 0, otherwise "layer 3".
std::string layer_name(size_t layer);

}  // namespace qkv
