#include "text/lines.h"

#include <unicode/utf8.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// Returns whether Python's str.splitlines() ends a line here, or C's strings end.
bool ends_line(UChar32 c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029 || c == 0;
}

void visit_stream(std::istream& in, const std::string& name, OnLine on_line) {
  int64_t number = 0;
  errno = 0;
  for (std::string line; std::getline(in, line);) {
    number++;
    if (line.ends_with('\r')) line.pop_back();
    const size_t invalid = find_invalid_utf8(line);
    if (invalid != std::string::npos)
      fail("{}:{}: byte {} of the line is not valid UTF-8{}", name, number, invalid + 1,
           encoding_hint(number == 1 ? line : ""));
    if (!on_line(std::move(line))) return;
  }
  if (in.bad()) fail("{}: cannot be read: {}", name, std::strerror(errno ? errno : EIO));
}

}  // namespace

void visit_lines(const std::string& path, OnLine on_line) {
  if (path == "-") return visit_stream(std::cin, "standard input", on_line);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be opened: {}", path, std::strerror(errno));
  visit_stream(file, path, on_line);
}

std::vector<std::string> read_first_lines(const std::string& path, int64_t most) {
  std::vector<std::string> lines;
  visit_lines(path, [&](std::string&& line) {
    lines.push_back(std::move(line));
    return most == 0 || std::ssize(lines) < most;
  });
  return lines;
}

std::vector<std::string> read_lines(std::istream& in, const std::string& name) {
  std::vector<std::string> lines;
  visit_stream(in, name, [&](std::string&& line) {
    lines.push_back(std::move(line));
    return true;
  });
  return lines;
}

std::vector<std::string> read_lines(const std::string& path) { return read_first_lines(path, 0); }

std::vector<std::string> read_option_lines(const std::string& path, size_t most_bytes) {
  std::istringstream text(read_file(path, most_bytes, Accepts::unnamed_pipe));
  return read_lines(text, path);
}

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
