#include "chat/jinja/characters.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "core/fail.h"

namespace qkv::jinja {
namespace {

using Mapping = void (*)(std::string_view, icu::StringByteSink<std::string>&, UErrorCode&);

icu::StringPiece piece_of(std::string_view text) { return {text.data(), static_cast<int32_t>(text.size())}; }

std::string mapped(std::string_view text, Mapping mapping) {
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  UErrorCode error = U_ZERO_ERROR;
  mapping(text, sink, error);
  if (U_FAILURE(error)) fail("chat template: a text cannot be changed to another case: {}", u_errorName(error));
  return result;
}

std::string upper(std::string_view text) {
  return mapped(text, [](std::string_view t, icu::StringByteSink<std::string>& sink, UErrorCode& error) {
    icu::CaseMap::utf8ToUpper("", 0, piece_of(t), sink, nullptr, error);
  });
}

std::string lower(std::string_view text) {
  return mapped(text, [](std::string_view t, icu::StringByteSink<std::string>& sink, UErrorCode& error) {
    icu::CaseMap::utf8ToLower("", 0, piece_of(t), sink, nullptr, error);
  });
}

// Title case of one character, which may become several.
std::string title_of(std::string_view character) {
  size_t place = 0;
  const int32_t c = next_character(character, place), title = u_totitle(c);
  if (title == c) return u_isupper(c) ? std::string(character) : upper(character);
  std::string text;
  append_character(text, title);
  return text;
}

bool is_cased(int32_t c) { return u_isULowercase(c) || u_isUUppercase(c) || u_istitle(c); }

std::string title(std::string_view text) {
  std::string result;
  bool inside = false;  // a word
  for (size_t place = 0; place < text.size();) {
    const size_t begin = place;
    const int32_t c = next_character(text, place);
    const std::string_view bytes = text.substr(begin, place - begin);
    result += inside ? lower(bytes) : title_of(bytes);
    inside = is_cased(c);
  }
  return result;
}

std::string capital(std::string_view text) {
  if (text.empty()) return "";
  size_t place = 0;
  next_character(text, place);
  return title_of(text.substr(0, place)) + lower(text.substr(place));
}

std::string swapped(std::string_view text) {
  std::string result;
  for (size_t place = 0; place < text.size();) {
    const size_t begin = place;
    const int32_t c = next_character(text, place);
    const std::string_view bytes = text.substr(begin, place - begin);
    result += u_isUUppercase(c) ? lower(bytes) : u_isULowercase(c) ? upper(bytes) : std::string(bytes);
  }
  return result;
}

}  // namespace

int32_t next_character(std::string_view text, size_t& place) {
  auto at = static_cast<int64_t>(place);
  UChar32 c = 0;
  U8_NEXT_OR_FFFD(text.data(), at, static_cast<int64_t>(text.size()), c);
  place = static_cast<size_t>(at);
  return c;
}

void append_character(std::string& text, int32_t character) {
  char bytes[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, character);
  text.append(bytes, static_cast<size_t>(length));
}

std::vector<size_t> character_places(std::string_view text) {
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); i++)
    if (!U8_IS_TRAIL(text[i])) places.push_back(i);
  places.push_back(text.size());
  return places;
}

bool is_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool breaks_line(int32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

std::string_view strip_left(std::string_view text) {
  for (size_t place = 0; !text.empty(); place = 0) {
    if (!is_space(next_character(text, place))) break;
    text.remove_prefix(place);
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && U8_IS_TRAIL(text[begin])) begin--;
    size_t place = begin;
    if (!is_space(next_character(text, place))) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

std::string with_case(std::string_view text, LetterCase letter_case) {
  switch (letter_case) {
    case LetterCase::lower:
      return lower(text);
    case LetterCase::upper:
      return upper(text);
    case LetterCase::title:
      return title(text);
    case LetterCase::capital:
      return capital(text);
    case LetterCase::swapped:
      break;
  }
  return swapped(text);
}

}  // namespace qkv::jinja
