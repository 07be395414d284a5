// Parts and changes of texts, which methods and filters share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/characters.h"
#include "chat/jinja/renderer.h"

namespace qkv::jinja {

// most: the number of cuts; negative: no limit.
std::vector<ByteRange> split_at(std::string_view text, std::string_view separator, int64_t most, bool from_right);
std::vector<ByteRange> split_at_space(std::string_view text, int64_t most, bool from_right);
std::vector<ByteRange> lines_of(std::string_view text, bool with_breaks);
Value texts_of(Renderer& r, const MarkedText& text, const std::vector<ByteRange>& parts);  // a list

// characters: those to remove; null is white space.
MarkedText stripped(const MarkedText& text, bool left, bool right, const MarkedText* characters);
// most: the number of replacements; negative: no limit.
MarkedText replaced(Renderer& r, const MarkedText& text, const MarkedText& old_text, const MarkedText& new_text,
                    int64_t most);
MarkedText padded(Renderer& r, const MarkedText& text, const std::string& fill, int64_t left, int64_t right);

// A text with data in it is all data afterwards: a change of case may move bytes.
MarkedText cased(const MarkedText& text, LetterCase letter_case);
bool has_case(std::string_view text, bool upper);  // what isupper and islower say

}  // namespace qkv::jinja
