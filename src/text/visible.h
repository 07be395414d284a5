// Text as it is displayed: tokens on one line, with their spaces and line breaks to be seen; and the characters of a
// terminal with their widths, from which cells and lines are made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// A space becomes "▁", as vocabularies write it, a line break "⏎", a tab "⇥"; other control characters and bytes that
// are not UTF-8 become "<0x1B>", and what could turn the line around U+FFFD.
std::string visible(std::string_view text);

// visible, but spaces stay as they are: a path as messages of one line show it.
std::string in_one_line(std::string_view text);

// One displayed character with its combining marks, one or two columns wide.
struct Glyph {
  std::string bytes;
  size_t width;
};

// Splits text into glyphs. Drops invisible format characters, which could reverse the line. Replaces control characters
// and invalid UTF-8, which could control the terminal, by U+FFFD.
std::vector<Glyph> glyphs(const std::string& text);

size_t width(const std::vector<Glyph>& text);  // in columns of the terminal
size_t width(const std::string& text);

// Cut text to a width, with "…" in place of what is cut off.
void shorten(std::vector<Glyph>& text, size_t limit);
std::string shortened(const std::string& text, size_t limit);

// Returns text with spaces after it, or before it, up to a width. Longer text stays as it is.
enum class TextSide { left, right };
std::string aligned(const std::string& text, size_t columns, TextSide side);
// Returns text of exactly a width: longer text is cut.
std::string fitted(const std::string& text, size_t columns);
// Returns a line without the spaces at its end, with a line break.
std::string trimmed_line(std::string line);
// Breaks text into lines of at most a width, each after `indent`, if no word is longer. Words are between spaces.
std::string wrapped(const std::string& text, size_t columns, const std::string& indent = "");

}  // namespace qkv
