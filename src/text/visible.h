// Tokens as they are shown: on one line, with their spaces and line breaks to be seen.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// A space becomes "▁", as vocabularies write it, a line break "⏎", a tab "⇥"; other control characters and bytes that
// are not UTF-8 become "<0x1B>", and what could turn the line around U+FFFD.
std::string visible(std::string_view text);

// visible, but spaces stay as they are: a path as messages of one line show it.
std::string in_one_line(std::string_view text);

}  // namespace qkv
