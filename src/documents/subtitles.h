// Subtitles in the formats SubRip (.srt) and WebVTT: a line with two times, lines of text, and an empty line.
#pragma once

#include <string>

#include "documents/split_text.h"

namespace qkv {

// Splits subtitles into their texts, each the lines below a line with times, joined by spaces. A line that begins with
// a dash is a part of its own, without the dash: another person speaks. Tags such as <i> and {\an8} are tags of the
// part; numbers, times, line ends and blocks without times stay. The text is valid UTF-8. Takes time and memory linear
// in its size.
SplitText split_subtitles(std::string text, const TextSpelling& spelling);

}  // namespace qkv
