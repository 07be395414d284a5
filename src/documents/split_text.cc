#include "documents/split_text.h"

#include "core/fail.h"
#include "documents/html_tokens.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr std::string_view kCdata = "<![CDATA[", kCdataEnd = "]]>";

size_t decode_nothing(std::string_view, std::string&) { return 0; }

void append_plain(std::string_view text, std::string& to) { to += text; }

size_t decode_html(std::string_view text, std::string& to) {
  return text.starts_with('&') ? decode_reference(text, to) : 0;
}

size_t decode_xml(std::string_view text, std::string& to) {
  if (!text.starts_with(kCdata)) return decode_html(text, to);
  const size_t end = text.find(kCdataEnd, kCdata.size());
  if (end == text.npos) return 0;
  to += text.substr(kCdata.size(), end - kCdata.size());
  return end + kCdataEnd.size();
}

// Characters that XML does not have become U+FFFD.
void append_as_xml(std::string_view text, std::string& to) {
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    const bool is_control = c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r';
    const bool is_noncharacter = text.substr(i, 3) == "\uFFFE" || text.substr(i, 3) == "\uFFFF";
    if (is_control || is_noncharacter)
      to += "\uFFFD";
    else if (c == '&')
      to += "&amp;";
    else if (c == '<')
      to += "&lt;";
    else if (c == '>')
      to += "&gt;";
    else if (c == '\r')
      to += "&#13;";
    else
      to += c;
    if (is_noncharacter) i += 2;
  }
}

}  // namespace

const TextSpelling kPlainSpelling = {decode_nothing, append_plain};
const TextSpelling kHtmlSpelling = {decode_html, append_as_html};
const TextSpelling kXmlSpelling = {decode_xml, append_as_xml};

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

void expect_utf8(std::string_view text) {
  if (const size_t bad = find_invalid_utf8(text); bad < text.size())
    fail("the text must be UTF-8 (byte {} is not)", bad + 1);
}

}  // namespace qkv
