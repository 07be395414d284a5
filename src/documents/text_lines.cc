#include "documents/text_lines.h"

#include <algorithm>
#include <utility>

#include "text/unicode.h"

namespace qkv {

SplitText split_lines(std::string text) {
  SplitText document{.bytes = std::move(text), .format = TextFormat::lines};
  const std::string_view bytes = document.bytes, mark = "\uFEFF";
  for (size_t begin = bytes.starts_with(mark) ? mark.size() : 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find_first_of("\r\n", begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    if (!split_words(line).empty()) document.parts.push_back({begin, end, std::string(line)});
    begin = end + 1;
  }
  return document;
}

}  // namespace qkv
