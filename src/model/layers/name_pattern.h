// Patterns that select parameters by name:
//   embeddings         tables of tokens and of positions, and the norm of their sum
//   S.S. …             segments that follow each other in the name, where each S is a segment ("encoder", "q"), a
//   number
//                      or a range of numbers ("3", "0-3"), or text in which * stands for any characters ("*_norm")
// "encoder.layers.0-3" selects four layers of the encoder, "layers.0-3" four of each side, "feed_forward" all
// feed-forward layers, "bias" all biases.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Whether the pattern selects the parameter of this name.
bool matches_name(std::string_view pattern, std::string_view name);

// Returns for each name whether one of the patterns selects it. Throws Error, beginning with `where` and listing what
// there is, for a pattern that selects none.
std::vector<bool> select_names(std::span<const std::string> patterns, std::span<const std::string> names,
                               std::string_view where);

}  // namespace qkv
