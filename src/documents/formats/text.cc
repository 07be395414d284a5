// Plain text: each line is a part.
#include <algorithm>
#include <string_view>
#include <utility>

#include "documents/document.h"
#include "text/unicode.h"

namespace qkv {
namespace {

SplitText split_lines(std::string text) {
  SplitText document{.bytes = std::move(text)};
  const std::string_view bytes = document.bytes, mark = "\uFEFF";
  for (size_t begin = bytes.starts_with(mark) ? mark.size() : 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find_first_of("\r\n", begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    if (!split_words(line).empty()) document.parts.push_back({begin, end, std::string(line)});
    begin = end + 1;
  }
  return document;
}

}  // namespace

namespace document_formats {

// Line ends stay, as do a byte-order mark and lines of white space.
const DocumentFormat& text() {
  static const DocumentFormat format = {
      "text", "Plain text", {".txt"}, [](std::string text, const auto&) { return split_lines(std::move(text)); }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
