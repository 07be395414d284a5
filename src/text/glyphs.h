// Text as a terminal displays it.
#pragma once

#include <string>
#include <vector>

namespace qkv {

// One displayed character with its combining marks, one or two columns wide.
struct Glyph {
  std::string bytes;
  size_t width;
};

// Splits text into glyphs. Drops invisible format characters, which could reverse the line. Replaces control characters
// and invalid UTF-8, which could control the terminal, by U+FFFD.
std::vector<Glyph> glyphs(const std::string& text);

size_t width(const std::vector<Glyph>& text);  // in columns

// Cuts text to a width, with "…" in place of what is cut off.
void shorten(std::vector<Glyph>& text, size_t limit);

}  // namespace qkv
