#include "text/sentence_characters.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "core/to_size.h"

namespace qkv::sentence {
namespace {

bool has_category(UChar32 c, uint32_t mask) { return c >= 0 && (U_GET_GC_MASK(c) & mask) != 0; }
bool has_property(UChar32 c, UProperty property) { return c >= 0 && u_hasBinaryProperty(c, property); }

}  // namespace

Character character_at(std::string_view text, size_t at) {
  Character found{-1, at, at};
  if (at >= text.size()) return found;
  const auto length = static_cast<int64_t>(text.size());
  auto i = static_cast<int64_t>(at);
  U8_NEXT(text.data(), i, length, found.code);
  found.end = to_size(i);
  return found;
}

Character character_before(std::string_view text, size_t at) {
  Character found{-1, at, at};
  if (at == 0) return found;
  const size_t near = at - std::min<size_t>(at, U8_MAX_LENGTH);
  const std::string_view bytes = text.substr(near, at - near);
  auto i = static_cast<int32_t>(bytes.size());
  U8_PREV(bytes.data(), 0, i, found.code);
  found.begin = near + to_size(i);
  return found;
}

bool is_blank(UChar32 c) { return c >= 0 && (u_isUWhiteSpace(c) || (c >= 0x1C && c <= 0x1F)); }
bool is_letter(UChar32 c) { return has_property(c, UCHAR_ALPHABETIC); }
bool is_digit(UChar32 c) { return has_category(c, U_GC_ND_MASK); }
bool is_combining(UChar32 c) { return has_category(c, U_GC_M_MASK); }
bool is_dash(UChar32 c) { return has_category(c, U_GC_PD_MASK); }
bool is_symbol(UChar32 c) { return has_category(c, U_GC_S_MASK); }

bool is_lower(UChar32 c) {
  const bool is_georgian = c >= 0x10D0 && c <= 0x10FF;
  return has_property(c, UCHAR_LOWERCASE) && !is_georgian;
}
bool is_upper(UChar32 c) { return has_category(c, U_GC_LU_MASK | U_GC_LT_MASK); }

bool is_quote(UChar32 c) { return c == '"' || c == '\'' || has_category(c, U_GC_PI_MASK | U_GC_PF_MASK); }
bool is_closing_quote(UChar32 c) { return has_category(c, U_GC_PF_MASK); }
bool is_closing_bracket(UChar32 c) { return has_category(c, U_GC_PE_MASK); }
bool is_opening(UChar32 c) { return c == U'¿' || c == U'¡' || is_quote(c) || has_category(c, U_GC_PS_MASK); }

bool is_unspaced(UChar32 c) {
  return (c >= 0x3000 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFF00 && c <= 0xFF9F) || (c >= 0x20000 && c <= 0x3FFFF);
}
bool is_thai_or_lao(UChar32 c) { return c >= 0x0E00 && c <= 0x0EFF; }

bool has_spaced_words(UChar32 c) {
  constexpr UChar32 kThai = 0x0E00;
  const bool is_full_width = c >= 0xFF00 && c <= 0xFF60;  // letters and digits that form words
  return c < kThai || is_full_width ||
         (!is_unspaced(c) && u_getIntPropertyValue(c, UCHAR_LINE_BREAK) != U_LB_COMPLEX_CONTEXT);
}

bool is_emoji(UChar32 c) {
  constexpr UChar32 kJoiner = 0x200D, kVariant = 0xFE0F, kArrows = 0x2190;
  if (c == kJoiner || c == kVariant) return true;
  return c >= kArrows && (has_property(c, UCHAR_EXTENDED_PICTOGRAPHIC) || has_property(c, UCHAR_EMOJI_MODIFIER) ||
                          has_property(c, UCHAR_REGIONAL_INDICATOR));
}

size_t emoticon_at(std::string_view text, size_t at) {
  const auto is_one = [&](size_t i, std::string_view set) { return i < text.size() && set.find(text[i]) != set.npos; };
  if (!is_one(at, ":;=")) return 0;
  size_t end = at + 1;
  if (is_one(end, "-'^o")) end++;
  if (!is_one(end, ")(DPp][|*")) return 0;
  end++;
  if (is_one(end, text.substr(end - 1, 1))) end++;  // :))
  return end == text.size() || is_blank(character_at(text, end).code) ? end - at : 0;
}

size_t count_letters(std::string_view text) {
  size_t letters = 0;
  for (Character c = character_at(text, 0); c.begin < text.size(); c = character_at(text, c.end))
    letters += is_letter(c.code) && !is_combining(c.code);
  return letters;
}

bool has_letter_or_digit(std::string_view text) {
  for (Character c = character_at(text, 0); c.begin < text.size(); c = character_at(text, c.end))
    if (is_alphanumeric(c.code)) return true;
  return false;
}

Stop stop_of(UChar32 c) {
  switch (c) {
    case U'.':
    case U'．':
      return Stop::dot;
    case U'‥':
    case U'…':
    case U'⋯':
      return Stop::ellipsis;
    case U'!':
    case U'！':
      return Stop::exclamation;
    case U'?':
    case U'？':
      return Stop::question;
    case 0x37E:  // Greek question mark
      return Stop::full;
    default:
      break;
  }
  const bool is_common = c < 0x589 || (c >= 0x3400 && c <= 0xD7FF);  // letters of most texts, and no stop
  return !is_common && has_property(c, UCHAR_S_TERM) ? Stop::full : Stop::none;
}

}  // namespace qkv::sentence
