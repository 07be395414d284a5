// White space, letter case and places of characters, as Python has them. Texts are valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::jinja {

// Returns the code point that begins at a place, and moves the place behind it.
int32_t next_character(std::string_view text, size_t& place);
void append_character(std::string& text, int32_t character);
std::vector<size_t> character_places(std::string_view text);  // of each character, then the size of the text

bool is_space(int32_t character);
bool breaks_line(int32_t character);
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

// The five methods of Python's str that change letters.
enum class LetterCase { lower, upper, title, capital, swapped };
std::string with_case(std::string_view text, LetterCase letter_case);

}  // namespace qkv::jinja
