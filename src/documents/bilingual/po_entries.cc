#include "documents/bilingual/po_entries.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/fail.h"

namespace qkv {
namespace {

constexpr std::string_view kPoBlank = " \t\r\n\f\v";
// The characters after a backslash, and what they stand for.
constexpr std::string_view kPoEscapes = "ntbrfva\\\"", kPoEscaped = "\n\t\b\r\f\v\a\\\"";

bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_po_digit(char c) { return c >= '0' && c <= '9'; }
bool is_po_hex_digit(char c) { return is_po_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Returns the beginning of the text's first line, without a part of a character.
std::string_view shown(std::string_view text, size_t most) {
  text = text.substr(0, text.find_first_of("\r\n"));
  size_t size = std::min(text.size(), most);
  while (size > 0 && size < text.size() && (text[size] & 0xC0) == 0x80) size--;
  return text.substr(0, size);
}

class PoReader {
 public:
  explicit PoReader(std::string_view file) : file_(file) {}

  std::vector<PoEntry> read() {
    if (file_.starts_with("\uFEFF")) at_ = 3;
    while (skip_blank()) {
      if (file_[at_] == '#')
        read_comment();
      else if (file_[at_] == '"')
        fail("line {}: a string follows no keyword such as msgid", line_);
      else
        read_keyword();
    }
    end_entry();
    return std::move(entries_);
  }

 private:
  // Returns false at the end of the file.
  bool skip_blank() {
    for (; at_ < file_.size() && kPoBlank.find(file_[at_]) != kPoBlank.npos; at_++) line_ += file_[at_] == '\n';
    return at_ < file_.size();
  }

  void read_comment() {
    const size_t end = std::min(file_.find('\n', at_), file_.size());
    std::string_view comment = file_.substr(at_, end - at_);
    at_ = end;
    if (comment.starts_with("#~")) is_fuzzy_ = false;  // the flags before it are those of an obsolete entry
    if (!comment.starts_with("#,") && !comment.starts_with("#=")) return;
    while (!comment.empty()) {
      comment.remove_prefix(std::min(comment.find_first_not_of(", \t\r#="), comment.size()));
      const std::string_view flag = comment.substr(0, comment.find_first_of(", \t\r"));
      comment.remove_prefix(flag.size());
      if (flag == "fuzzy") is_fuzzy_ = true;
    }
  }

  void read_keyword() {
    const size_t line = line_;
    const std::string_view rest = file_.substr(at_, 256);
    const std::string_view keyword = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
    if (keyword != "msgid" && keyword != "msgid_plural" && keyword != "msgstr" && keyword != "msgctxt" &&
        keyword != "domain")
      fail(
          "line {}: found \"{}\" (must be a comment, a string in quotes, or msgctxt, msgid, msgid_plural, msgstr or "
          "domain)",
          line, shown(rest, 32));
    at_ += keyword.size();
    if (keyword == "msgstr") return read_translation(line);
    const ByteRange strings = read_strings(keyword);
    if (keyword == "msgid") {
      end_entry();
      entry_ = {.is_fuzzy = std::exchange(is_fuzzy_, false), .id = strings, .line = line};
      is_open_ = true;
    } else if (keyword == "msgid_plural") {
      if (!is_open_ || !entry_.strings.empty() || entry_.has_plural())
        fail("line {}: msgid_plural must follow a msgid", line);
      entry_.plural = strings;
    } else {
      end_entry();
    }
  }

  void read_translation(size_t line) {
    const bool has_number = skip_blank() && file_[at_] == '[';
    if (!is_open_ || has_number != entry_.has_plural() || (!has_number && !entry_.strings.empty()))
      fail("line {}: {}", line,
           !is_open_    ? "msgstr must follow a msgid"
           : has_number ? "msgstr[N] must follow a msgid_plural"
                        : "an entry must have one msgstr, or msgstr[N] after msgid_plural");
    if (has_number) read_number(line);
    entry_.strings.push_back(read_strings("msgstr"));
  }

  // Plural forms are numbered from 0 on. Few are accepted, as each has a copy of msgid_plural.
  void read_number(size_t line) {
    at_++;
    size_t number = 0, digits = 0;
    for (skip_blank(); at_ < file_.size() && is_po_digit(file_[at_]) && digits < 4; at_++, digits++)
      number = number * 10 + static_cast<size_t>(file_[at_] - '0');
    if (!skip_blank() || file_[at_] != ']' || digits == 0 || number != entry_.strings.size() ||
        number >= PoEntry::kMostForms)
      fail("line {}: msgstr[N] must be numbered 0, 1, … up to {}", line, PoEntry::kMostForms - 1);
    at_++;
  }

  // Returns the range of one or more strings in quotes.
  ByteRange read_strings(std::string_view keyword) {
    if (!skip_blank() || file_[at_] != '"') fail("line {}: {} must be followed by a string in quotes", line_, keyword);
    ByteRange range{at_, at_};
    while (skip_blank() && file_[at_] == '"') {
      at_++;
      while (at_ < file_.size() && file_[at_] != '"' && file_[at_] != '\n')
        at_ += file_.substr(at_, 2) == "\\\"" || file_.substr(at_, 2) == "\\\\" ? 2 : 1;
      if (at_ >= file_.size() || file_[at_] != '"') fail("line {}: the string does not end with a quote", line_);
      range.end = ++at_;
    }
    return range;
  }

  void end_entry() {
    if (is_open_ && entry_.strings.empty()) fail("line {}: the msgid has no msgstr", entry_.line);
    if (is_open_) entries_.push_back(std::move(entry_));
    is_open_ = false;
  }

  const std::string_view file_;
  size_t at_ = 0, line_ = 1;
  bool is_fuzzy_ = false;  // the next entry
  bool is_open_ = false;   // entry_ is one that has begun
  PoEntry entry_ = {};
  std::vector<PoEntry> entries_ = {};
};

// Appends what an escape stands for, and returns its length; the text begins with a backslash.
size_t decode_escape(std::string_view text, std::string& to) {
  const char c = text[1];
  if (const size_t found = kPoEscapes.find(c); found != kPoEscapes.npos) {
    to += kPoEscaped[found];
    return 2;
  }
  const bool is_hex = c == 'x';
  const size_t begin = is_hex ? 2 : 1, end = 4;
  size_t size = begin;
  unsigned code = 0;
  for (; size < end && (is_hex ? is_po_hex_digit(text[size]) : is_octal(text[size])); size++) {
    const char digit = text[size];
    const int value = is_po_digit(digit) ? digit - '0' : (digit | 0x20) - 'a' + 10;
    code = code * (is_hex ? 16 : 8) + static_cast<unsigned>(value);
  }
  if (size == begin || code >= 0x80) return 0;
  to += static_cast<char>(code);
  return size;
}

}  // namespace

std::vector<PoEntry> read_po(std::string_view file) { return PoReader(file).read(); }

std::string po_text(std::string_view file, ByteRange strings) {
  std::string text;
  bool is_inside = false;
  for (size_t at = strings.begin; at < strings.end;) {
    const char c = file[at];
    if (c == '"') is_inside = !is_inside;
    if (c == '"' || !is_inside) {
      at++;
    } else if (c != '\\') {
      text += c;
      at++;
    } else if (const size_t size = decode_escape(file.substr(at, strings.end - at), text)) {
      at += size;
    } else {
      const auto line = std::ranges::count(file.substr(0, at), '\n') + 1;
      fail("line {}: unknown escape {} (must be \\n, \\t, \\\", \\\\ or another one of C for an ASCII character)", line,
           shown(file.substr(at), 4));
    }
  }
  return text;
}

void append_as_po(std::string_view text, std::string& to) {
  for (const char c : text) {
    const size_t escape = kPoEscaped.find(c);
    if (c == '\0')
      to += "\uFFFD";  // a C string ends there
    else if (escape != kPoEscaped.npos)
      (to += '\\') += kPoEscapes[escape];
    else if ((c >= 0 && c < ' ') || c == '\x7F')
      to += fmt::format("\\{:03o}", static_cast<unsigned>(c));
    else
      to += c;
  }
}

}  // namespace qkv
