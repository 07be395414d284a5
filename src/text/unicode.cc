#include "text/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/utf8.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/fail.h"

namespace qkv {

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
    if (c < 0) return static_cast<size_t>(begin);
  }
  return std::string_view::npos;
}

std::string encoding_hint(std::string_view beginning) {
  using namespace std::string_view_literals;
  for (const auto& [mark, hint] : {std::pair{"\x1F\x8B"sv, "the file is compressed, \"zcat FILE\" prints its text"sv},
                                   {"\x28\xB5\x2F\xFD"sv, "the file is compressed, \"zstdcat FILE\" prints its text"},
                                   {"\xFD\x37zXZ"sv, "the file is compressed, \"xzcat FILE\" prints its text"},
                                   {"BZh"sv, "the file is compressed, \"bzcat FILE\" prints its text"},
                                   {"PK\3\4"sv, "the file is a zip archive, \"unzip -p FILE\" prints its text"},
                                   {"7z\xBC\xAF"sv, "the file is a 7z archive, wanted text"},
                                   {"PAR1"sv, "the file is Parquet, wanted text"},
                                   {"\xFF\xFE"sv, "the file is UTF-16, \"iconv -f utf-16 -t utf-8 FILE\" makes it so"},
                                   {"\xFE\xFF"sv, "the file is UTF-16, \"iconv -f utf-16 -t utf-8 FILE\" makes it so"}})
    if (beginning.starts_with(mark)) return fmt::format(" ({})", hint);
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

}  // namespace qkv
