// The tokens that BLEU counts: the rules of mteval-v13a, NIST's script for machine translation, as sacreBLEU has them.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// The tokens of a line, joined by one space. ASCII punctuation stands alone, but for apostrophes, for periods and
// commas between digits and for hyphens that follow no digit; everything else is cut at white space only.
std::string tokenize_13a(std::string_view line);

}  // namespace qkv
