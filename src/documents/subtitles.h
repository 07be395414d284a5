// Subtitles in the SubRip format (.srt): a number, a line with two times, lines of text, and an empty line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "documents/split_text.h"

namespace qkv {

// Splits subtitles into their texts, each the lines below a line with times, joined by spaces. A line that begins with
// a dash is a part of its own, without the dash: another person speaks. Tags such as <i> and {\an8} are tags of the
// part; numbers, times and line ends stay. The text is valid UTF-8. Takes time and memory linear in its size.
SplitText split_subtitles(std::string text);

struct SubtitleLines {
  size_t count = 1;
  std::string_view end = "\n";
};

// Returns the number of lines of a part, and how the first one ends.
SubtitleLines subtitle_lines(std::string_view bytes);

// Returns the text with line feeds in the place of spaces: at most `count` lines of about the same length.
std::string break_lines(std::string text, size_t count);

// Returns the text with its line feeds replaced.
std::string with_line_ends(std::string_view text, const SubtitleLines& lines);

}  // namespace qkv
