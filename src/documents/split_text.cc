#include "documents/split_text.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "documents/html.h"
#include "documents/subtitles.h"
#include "text/unicode.h"

namespace qkv {

std::string join(const SplitText& document, std::span<const std::string> replacements) {
  if (replacements.size() != document.parts.size())
    fail("a text of {} parts needs as many replacements (has {})", document.parts.size(), replacements.size());
  std::string joined;
  size_t done = 0;
  for (size_t i = 0; i < replacements.size(); i++) {
    joined += document.slice(done, document.parts[i].begin);
    joined += replacements[i];
    done = document.parts[i].end;
  }
  joined += document.slice(done, document.bytes.size());
  return joined;
}

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
