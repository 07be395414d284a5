// YAML, the format of Marian's configurations and vocabularies, read with libyaml, but with the characters that
// yaml-cpp allows, by which Marian reads and writes: U+0085, U+2028 and U+2029 end no line, U+007F to U+009F, U+FEFF,
// U+FFFE and U+FFFF are characters, and its longer forms of U+007F, U+07FF and U+FFFF are these. A byte order mark at
// the beginning is skipped.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Returns a mapping as a JSON object. Plain scalars are null, true, false, numbers or strings, quoted ones are strings.
// Throws Error, beginning with `where` and naming the line, for text that is no YAML, for anything but one mapping,
// more than 16 levels, more than 65,536 values, aliases, and keys that appear twice.
nlohmann::json parse_yaml(std::string_view text, const std::string& where);

// Returns the pieces of a vocabulary, a mapping of pieces to ids, in the order of the ids, which must be 0, 1, …
// without a gap. Throws Error as above, and for more than kMaxPieces pieces.
std::vector<std::string> parse_yaml_vocabulary(std::string_view text, const std::string& where);

}  // namespace qkv
