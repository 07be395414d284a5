// Text: how it is read, and how it is cut into tokens.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

enum class TokenizerKind { unigram, bpe };
constexpr std::array<std::string_view, 2> names_of(TokenizerKind) { return {"unigram", "bpe"}; }

// The lines of a file, or of standard input where path is "-", without their ends ("\n" or "\r\n"); the last line may
// lack its end. All are valid UTF-8. Throws Error that names the file and, for invalid UTF-8, the line.
std::vector<std::string> read_lines(const std::string& path);

}  // namespace qkv
