#include "documents/text_files.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "documents/html.h"
#include "documents/subtitles.h"
#include "documents/text_lines.h"
#include "text/unicode.h"

namespace qkv {

std::optional<TextFormat> format_of_file(std::string_view name) {
  constexpr std::array kFormats = {TextFormat::lines, TextFormat::html, TextFormat::srt};
  for (size_t i = 0; i < kFormats.size(); i++) {
    const std::string_view extension = kTextFileExtensions[i];
    if (name.size() <= extension.size()) continue;
    const std::string_view end = name.substr(name.size() - extension.size());
    const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
    if (std::equal(end.begin(), end.end(), extension.begin(), same)) return kFormats[i];
  }
  return std::nullopt;
}

SplitText split_text(TextFormat format, std::string text) {
  if (const size_t bad = find_invalid_utf8(text); bad < text.size())
    fail("the text must be UTF-8 (byte {} is not)", bad + 1);
  switch (format) {
    case TextFormat::lines:
      return split_lines(std::move(text));
    case TextFormat::html:
      return split_html(std::move(text));
    case TextFormat::srt:
      return split_subtitles(std::move(text));
  }
  return {};
}

}  // namespace qkv
