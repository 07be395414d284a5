// Text as one line of a file, whichever line ends its reader knows.
#include <unicode/utf8.h>

#include <cstdint>

#include "core/to_size.h"
#include "qkv/text.h"

namespace qkv {
namespace {

// Returns whether Python's str.splitlines() ends a line here, or C's strings end.
bool ends_line(UChar32 c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029 || c == 0;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  const auto length = std::ssize(text);
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT(text.data(), i, length, c);
    if (!ends_line(c)) {
      line.append(text, to_size(begin), to_size(i - begin));
    } else if (c != '\n' || begin == 0 || text[to_size(begin - 1)] != '\r') {
      line += ' ';
    }
  }
  return line;
}

}  // namespace qkv
