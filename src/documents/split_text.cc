#include "documents/split_text.h"

#include <algorithm>

#include "core/fail.h"
#include "documents/html_tokens.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr std::string_view kCdata = "<![CDATA[", kCdataEnd = "]]>";

void append_plain(std::string_view text, std::string& to) { to += text; }

size_t decode_html(std::string_view text, std::string& to) {
  return text.starts_with('&') ? decode_reference(text, to) : 0;
}

// XML has no characters for U+FFFE, U+FFFF and most control characters, not even as references.
bool is_in_xml(std::string_view text) {
  const auto c = static_cast<unsigned char>(text[0]);
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
  return !text.starts_with("\uFFFE") && !text.starts_with("\uFFFF");
}

void append_as_xml(std::string_view text, std::string& to) {
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (!is_in_xml(text.substr(i))) {
      to += "\uFFFD";
      if (c == '\xEF') i += 2;
    } else if (c == '&')
      to += "&amp;";
    else if (c == '<')
      to += "&lt;";
    else if (c == '>')
      to += "&gt;";
    else if (c == '\r')
      to += "&#13;";
    else
      to += c;
  }
}

}  // namespace

size_t decode_nothing(std::string_view, std::string&) { return 0; }

size_t decode_xml(std::string_view text, std::string& to) {
  if (!text.starts_with(kCdata)) return decode_html(text, to);
  const size_t end = text.find(kCdataEnd, kCdata.size());
  if (end == text.npos) return 0;
  to += text.substr(kCdata.size(), end - kCdata.size());
  return end + kCdataEnd.size();
}

const TextSpelling kPlainSpelling = {decode_nothing, append_plain};
const TextSpelling kHtmlSpelling = {decode_html, append_as_html};
const TextSpelling kXmlSpelling = {decode_xml, append_as_xml};

std::string join(const SplitText& document, std::span<const std::string> replacements) {
  if (replacements.size() != document.parts.size())
    fail("a text of {} parts needs as many replacements (has {})", document.parts.size(), replacements.size());
  return join_range(document, {0, document.bytes.size()}, 0, replacements);
}

std::string join_range(const SplitText& document, ByteRange range, size_t first,
                       std::span<const std::string> replacements) {
  const std::span parts = std::span(document.parts).subspan(first);
  const auto found = std::ranges::lower_bound(parts, range.begin, {}, &TextPart::begin);
  std::string joined;
  size_t done = range.begin;
  for (auto part = found; part != parts.end() && part->end <= range.end; ++part) {
    if (part->begin < done) continue;  // within a part
    joined += document.slice(done, part->begin);
    joined += replacements[first + static_cast<size_t>(part - parts.begin())];
    done = part->end;
  }
  joined += document.slice(done, range.end);
  return joined;
}

void check_written_bytes(const SplitText& document, size_t written_bytes) {
  constexpr size_t kMostTimes = 4, kFewBytes = size_t{1} << 20;
  if (written_bytes > kMostTimes * document.bytes.size() + kFewBytes)
    fail("the tags of the text take more than {} times its size", kMostTimes);
}

void expect_utf8(std::string_view text) {
  if (const size_t bad = find_invalid_utf8(text); bad < text.size())
    fail("the text must be UTF-8 (byte {} is not)", bad + 1);
}

}  // namespace qkv
