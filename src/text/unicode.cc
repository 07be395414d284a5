#include "text/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "text/mark_hint.h"

namespace qkv {
namespace {

std::string normalize(const icu::Normalizer2* (*form)(UErrorCode&), std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  static const icu::UnicodeSet known(u"[:age=9.0:]", status);
  std::string normal;
  icu::StringByteSink<std::string> sink(&normal);
  if (const icu::Normalizer2* all = form(status); U_SUCCESS(status))
    icu::FilteredNormalizer2(*all, known)
        .normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr, status);
  if (U_FAILURE(status)) fail("normal form: {} on a text of {} bytes", u_errorName(status), text.size());
  return normal;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  const int64_t length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < length;) {
    uint64_t eight;  // bytes: most text is ASCII
    if (length - i >= 8 && (std::memcpy(&eight, text.data() + i, 8), (eight & 0x8080808080808080) == 0)) {
      i += 8;
      continue;
    }
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT(text.data(), i, length, c);
    if (c < 0) return to_size(begin);
  }
  return std::string_view::npos;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

size_t whole_characters(std::string_view text) {
  const std::string_view end = text.substr(text.size() - std::min<size_t>(text.size(), 4));
  auto whole = static_cast<int32_t>(end.size());
  U8_TRUNCATE_IF_INCOMPLETE(end.data(), 0, whole);
  return text.size() - end.size() + to_size(whole);
}

std::string encoding_hint(std::string_view beginning) {
  if (std::string hint = mark_hint(beginning); !hint.empty()) return hint;
  return " (Latin-1? \"iconv -f latin1 -t utf-8 FILE\" makes it so)";
}

std::string lowercase(std::string_view text) {
  std::string lower;
  icu::StringByteSink<std::string> sink(&lower);
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8ToLower("", 0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr,
                            status);
  if (U_FAILURE(status)) fail("lower case: {} on a text of {} bytes", u_errorName(status), text.size());
  return lower;
}

std::string compose(std::string_view text) { return normalize(icu::Normalizer2::getNFCInstance, text); }
std::string decompose(std::string_view text) { return normalize(icu::Normalizer2::getNFDInstance, text); }

std::string strip_accents(std::string_view text) {
  const std::string parts = normalize(icu::Normalizer2::getNFKDInstance, text);
  std::string result;
  const auto length = static_cast<int64_t>(parts.size());
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT_OR_FFFD(parts.data(), i, length, c);
    if (!(U_GET_GC_MASK(c) & U_GC_M_MASK)) result.append(parts, to_size(begin), to_size(i - begin));
  }
  return result;
}

}  // namespace qkv
