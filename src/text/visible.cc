#include "text/visible.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "core/to_size.h"

namespace qkv {
namespace {

bool is_hidden(UChar32 c) {
  constexpr uint32_t kHidden = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_ZL_MASK | U_GC_ZP_MASK;
  return (U_GET_GC_MASK(c) & kHidden) != 0;
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

}  // namespace qkv
