// Lines of text, kinds of tokenizers, and names that are similar.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

enum class TokenizerKind { unigram, bpe };
constexpr std::array<std::string_view, 2> names_of(TokenizerKind) { return {"unigram", "bpe"}; }

// Returns the lines of a file, or of standard input if path is "-", without their line ends ("\n" or "\r\n"). The last
// line need not have one. Throws Error, naming the file and the line, if a line is not valid UTF-8.
std::vector<std::string> read_lines(const std::string& path);

// Returns text as one line: a space in place of each line end and each NUL. A line end is "\r\n" or what Python's
// str.splitlines() takes for one: U+000A to U+000D, U+001C to U+001E, U+0085, U+2028, U+2029. Text that is not UTF-8
// stays as it is.
std::string one_line(std::string_view text);

// Returns the one of `names` that takes the fewest single-character edits to become `name`; "" if none is close.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace qkv
