// The tokenizer of BLEU: the rules of mteval-v13a, NIST's script for machine translation, as sacreBLEU implements them.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// Returns the tokens of a line, joined by single spaces. ASCII punctuation becomes separate tokens, except apostrophes,
// periods and commas between digits, and hyphens that do not follow a digit. All other text is split only at white
// space.
std::string tokenize_13a(std::string_view line);

}  // namespace qkv
