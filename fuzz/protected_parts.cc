// Parts of a text that a translation keeps. The first line is the regular expression for further parts, or empty.
#include "decode/terms/protected_parts.h"

#include <algorithm>

#include "core/fail.h"
#include "fuzz/reader.h"
#include "text/unicode.h"

namespace {

using namespace qkv;
using fuzz::require;

bool begins_character(std::string_view text, size_t at) {
  return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

void check_parts(const ProtectedPartFinder& finder, std::string_view text) {
  size_t done = 0;
  bool is_first = true;
  const std::vector<ProtectedPart> parts = finder.find(text);
  for (const ProtectedPart& part : parts) {
    require(is_first || part.begin > done, "parts are in order and do not touch");
    require(part.begin < part.end && part.end <= text.size(), "a part is within the text and not empty");
    require(begins_character(text, part.begin) && begins_character(text, part.end), "characters are whole");
    done = part.end;
    is_first = false;
  }
  require(finder.find(text) == parts, "the same text has the same parts");
}

}  // namespace

void qkv::fuzz::fuzz_protected_parts(std::string_view bytes) {
  if (const size_t invalid = find_invalid_utf8(bytes); invalid != bytes.npos) fail("not UTF-8 at byte {}", invalid);
  const size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::string_view text = bytes.substr(std::min(line + 1, bytes.size()));
  must_succeed([&] { check_parts(ProtectedPartFinder(true, ""), text); });
  check_parts(ProtectedPartFinder(true, std::string(bytes.substr(0, line))), text);
}
