#include "text/visible.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "core/to_size.h"

namespace qkv {
namespace {

bool is_hidden(UChar32 c) {
  constexpr uint32_t kHidden = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_ZL_MASK | U_GC_ZP_MASK;
  return (U_GET_GC_MASK(c) & kHidden) != 0;
}

bool is_mark(UChar32 c) {
  return (U_GET_GC_MASK(c) & (U_GC_MN_MASK | U_GC_ME_MASK)) != 0 || u_hasBinaryProperty(c, UCHAR_EMOJI_MODIFIER);
}

}  // namespace

std::string visible(std::string_view text) {
  std::string shown;
  const auto length = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < length;) {
    const int32_t begin = i;
    UChar32 c;
    U8_NEXT(text.data(), i, length, c);
    if (c == ' ') {
      shown += "▁";
    } else if (c == '\n') {
      shown += "⏎";
    } else if (c == '\t') {
      shown += "⇥";
    } else if (c < 0 || (c < 0x80 && is_hidden(c))) {
      for (int32_t k = begin; k < i; k++)
        fmt::format_to(std::back_inserter(shown), "<0x{:02X}>", static_cast<unsigned char>(text[to_size(k)]));
    } else if (is_hidden(c)) {
      shown += "\uFFFD";
    } else {
      shown.append(text, to_size(begin), to_size(i - begin));
    }
  }
  return shown;
}

std::string in_one_line(std::string_view text) {
  std::string line;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    line += visible(text.substr(begin, end - begin));
    if (end < text.size()) line += ' ';
    begin = end + 1;
  }
  return line;
}

std::vector<Glyph> glyphs(const std::string& text) {
  std::vector<Glyph> result;
  const auto length = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < length;) {
    UChar32 c;
    U8_NEXT_OR_FFFD(text.data(), i, length, c);
    const uint32_t category = U_GET_GC_MASK(c);
    if ((category & U_GC_CF_MASK) != 0) continue;
    if ((category & (U_GC_CC_MASK | U_GC_ZL_MASK | U_GC_ZP_MASK)) != 0) c = 0xFFFD;
    std::array<char, U8_MAX_LENGTH> bytes;
    size_t n = 0;
    U8_APPEND_UNSAFE(bytes.data(), n, c);
    if (is_mark(c) && !result.empty()) {
      result.back().bytes.append(bytes.data(), n);
    } else {
      const int32_t east_asian = u_getIntPropertyValue(c, UCHAR_EAST_ASIAN_WIDTH);
      result.push_back({{bytes.data(), n}, east_asian == U_EA_WIDE || east_asian == U_EA_FULLWIDTH ? 2u : 1u});
    }
  }
  return result;
}

size_t width(const std::vector<Glyph>& text) {
  size_t sum = 0;
  for (const Glyph& glyph : text) sum += glyph.width;
  return sum;
}

size_t width(const std::string& text) { return width(glyphs(text)); }

void shorten(std::vector<Glyph>& text, size_t limit) {
  if (width(text) <= limit) return;
  while (width(text) > limit - 1) text.pop_back();
  text.push_back({"…", 1});
}

std::string shortened(const std::string& text, size_t limit) {
  std::vector<Glyph> shown = glyphs(text);
  shorten(shown, limit);
  std::string line;
  for (const Glyph& glyph : shown) line += glyph.bytes;
  return line;
}

std::string aligned(const std::string& text, size_t columns, TextSide side) {
  const std::string space(columns - std::min(columns, width(text)), ' ');
  return side == TextSide::right ? space + text : text + space;
}

std::string fitted(const std::string& text, size_t columns) {
  return aligned(shortened(text, columns), columns, TextSide::left);
}

std::string trimmed_line(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string wrapped(const std::string& text, size_t columns, const std::string& indent) {
  std::string lines, line = indent;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const bool is_first = line.size() == indent.size();
    if (!is_first && width(line) + 1 + width(word) > columns) {
      lines += line + "\n";
      line = indent + word;
    } else {
      line += (is_first ? "" : " ") + word;
    }
    begin = end + 1;
  }
  return lines + line + "\n";
}

}  // namespace qkv
