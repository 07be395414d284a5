#include "text/glyphs.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <array>

namespace qkv {

namespace {

bool is_mark(UChar32 c) {
  return (U_GET_GC_MASK(c) & (U_GC_MN_MASK | U_GC_ME_MASK)) != 0 || u_hasBinaryProperty(c, UCHAR_EMOJI_MODIFIER);
}

}  // namespace

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

void shorten(std::vector<Glyph>& text, size_t limit) {
  if (width(text) <= limit) return;
  while (width(text) > limit - 1) text.pop_back();
  text.push_back({"…", 1});
}

}  // namespace qkv
