#include "documents/markdown/markdown_mask.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace qkv {
namespace {

constexpr std::string_view kMaskBlanks = " \t", kMaskPrefix = " \t>";
constexpr size_t kNoMaskEnd = std::string_view::npos;
constexpr char kMaskByte = '%';  // punctuation without a meaning in Markdown, as the edges of all masked marks are

bool is_masked_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 128;
}

bool is_blank_markdown(std::string_view line) { return line.find_first_not_of(" \t\r>") == line.npos; }

// "| --- | :-: |", without its prefix.
bool is_delimiter_row(std::string_view line) {
  return line.find_first_not_of("|:- \t\r") == line.npos && line.find('|') != line.npos && line.find('-') != line.npos;
}

class MarkdownMasker {
 public:
  explicit MarkdownMasker(std::string_view document) : text_(document) { masked_.bytes = document; }

  MaskedMarkdown mask() {
    size_t begin = text_.starts_with("\uFEFF") ? 3 : 0;
    blank(0, begin);
    begin = masked_.front_matter_end = mask_front_matter(begin);
    while (begin < text_.size()) {
      const size_t end = line_end(begin);
      mask_line(begin, end);
      before_previous_ = previous_;
      previous_ = {begin, end};
      begin = next_line(begin);
    }
    return std::move(masked_);
  }

 private:
  // Returns where the line's content ends.
  size_t line_end(size_t begin) const { return std::min(text_.find_first_of("\r\n", begin), text_.size()); }
  size_t next_line(size_t begin) const {
    const size_t end = line_end(begin);
    return std::min(end + (text_.substr(end).starts_with("\r\n") ? 2 : 1), text_.size());
  }
  std::string_view slice(size_t begin, size_t end) const { return text_.substr(begin, end - begin); }

  void blank(size_t begin, size_t end) {
    for (; begin < end; begin++)
      if (text_[begin] != '\n' && text_[begin] != '\r') masked_.bytes[begin] = ' ';
  }

  // Lines between "---" and "---" or "...", or between "+++" and "+++"; or up to three lines after "%".
  size_t mask_front_matter(size_t begin) {
    const auto trimmed = [&](size_t at) {
      const std::string_view line = slice(at, line_end(at));
      return line.substr(0, line.find_last_not_of(kMaskBlanks) + 1);
    };
    const std::string_view mark = trimmed(begin);
    size_t at = next_line(begin);
    if (mark == "---" || mark == "+++") {
      const std::string_view first = trimmed(at);
      if (first.find_first_of(":=#") == first.npos && first != mark) return begin;  // a rule
      for (; at < text_.size(); at = next_line(at)) {
        const std::string_view line = trimmed(at);
        if (line != mark && (line != "..." || mark != "---")) continue;
        at = next_line(at);
        blank(begin, at);
        return at;
      }
      return begin;
    }
    at = begin;
    for (int line = 0; line < 3 && text_.substr(at).starts_with("% "); line++) at = next_line(at);
    blank(begin, at);
    return at;
  }

  void mask_line(size_t begin, size_t end) {
    const size_t at = std::min(text_.find_first_not_of(kMaskPrefix, begin), end);
    const std::string_view line = slice(at, end);
    if (is_delimiter_row(line)) {
      begin_table(at, end);
      return;
    }
    size_t rest = at;
    if (line.starts_with(":::")) {
      blank(at, end);
      return;
    }
    if (line.starts_with("[!") && at > begin && slice(begin, at).find('>') != kNoMaskEnd)
      rest = mask_alert(at, end);
    else if (line.starts_with("[^"))
      rest = mask_footnote(at, end);
    else if (line.starts_with(": ") || line.starts_with(":\t"))
      masked_.bytes[at] = '-', rest = at + 1;
    else if (is_admonition(line, end))
      rest = mask_as_item(at, end);
    mask_inline(rest, end);
  }

  // "!!! note" before text that is indented by four.
  bool is_admonition(std::string_view line, size_t end) const {
    const std::string_view next = text_.substr(std::min(next_line(end), text_.size()));
    const bool is_begun =
        line.starts_with("!!! ") || line.starts_with("??? ") || line.starts_with("???+ ") || line.starts_with("=== \"");
    const std::string_view indent = next.substr(0, next.find_first_not_of(kMaskPrefix));
    return is_begun && (indent.find("    ") != indent.npos || indent.find('\t') != indent.npos ||
                        is_blank_markdown(next.substr(0, next.find_first_of("\r\n"))));
  }

  // "[!NOTE]" on a line of its own.
  size_t mask_alert(size_t at, size_t end) {
    const std::string_view line = slice(at, end);
    const size_t close = line.find(']');
    if (close == line.npos || line.find_first_not_of(kMaskBlanks, close + 1) != line.npos) return at;
    blank(at, end);
    return end;
  }

  // "[^1]:" becomes "- %%%".
  size_t mask_footnote(size_t at, size_t end) {
    const std::string_view line = slice(at, end);
    const size_t close = line.find_first_of("]`");
    return close != line.npos && line.substr(close).starts_with("]:") ? mask_as_item(at, at + close + 2) : at;
  }

  size_t mask_as_item(size_t begin, size_t end) {
    if (end - begin < 5) return begin;
    const bool is_indented = text_[begin] != '[';  // the text of "!!! note" is indented by four
    keep(begin, end);
    masked_.bytes[begin] = '-';
    for (size_t i = 1; i < (is_indented ? 4u : 2u); i++) masked_.bytes[begin + i] = ' ';
    return end;
  }

  // Reads "|-|:-:|": a cell needs three characters, and a header that follows a paragraph a blank line before it.
  void begin_table(size_t at, size_t end) {
    const auto content = [&](ByteRange line) { return slice(line.begin, line.end); };
    const std::string_view before = content(before_previous_);
    const size_t first = before.find_first_not_of(kMaskPrefix);
    const bool follows_text = first != before.npos && before[first] != '<' && before.find('|') == before.npos;
    const bool is_in_order = masked_.insertions.empty() || masked_.insertions.back().at < previous_.begin;
    if (content(previous_).find('|') != kNoMaskEnd && follows_text && is_in_order)
      masked_.insertions.push_back({previous_.begin, "\n"});
    while (at < end) {
      const size_t dash = at + std::min(slice(at, end).find_first_of(":-"), end - at);
      if (dash == end) return;
      at = std::min(text_.find_first_not_of(":-", dash), end);
      if (at - dash < 3) masked_.insertions.push_back({text_[dash] == ':' ? dash + 1 : dash, "--"});
    }
  }

  void mask_inline(size_t at, size_t end) {
    at = std::max(at, done_);
    blocked_ = {};
    while (at < end) {
      const size_t found = slice(at, end).find_first_of("\\$[{:");
      if (found == kNoMaskEnd) return;
      at += found;
      const size_t mark = text_[at] == '\\' ? kNoMaskEnd : end_of_mark(at, end);
      if (mark == kNoMaskEnd) {
        at += text_[at] == '\\' ? 2 : 1;
        continue;
      }
      keep(at, mark);
      at = done_ = mark;
    }
  }

  void keep(size_t begin, size_t end) {
    masked_.kept.push_back({begin, end});
    bool is_prefix = false;  // of a line
    for (size_t i = begin; i < end; i++) {
      const bool ends_line = text_[i] == '\n' || text_[i] == '\r';
      is_prefix = ends_line || (is_prefix && kMaskPrefix.find(text_[i]) != kNoMaskEnd);
      if (!is_prefix && text_[i] != '|') masked_.bytes[i] = kMaskByte;
    }
  }

  // Returns where the mark that begins here ends; kNoMaskEnd if none begins.
  size_t end_of_mark(size_t at, size_t end) {
    const std::string_view rest = slice(at, end);
    switch (rest[0]) {
      case '$':
        return rest.starts_with("$$") ? end_of_display(at) : end_of_formula(at, end);
      case '{':
        if (rest.starts_with("{{")) return find_close(at, end, "}}", 0);
        if (rest.starts_with("{%")) return find_close(at, end, "%}", 1);
        return rest.size() > 2 && std::string_view("#.:").find(rest[1]) != kNoMaskEnd && rest[2] != ' '
                   ? find_close(at, end, "}", 2)
                   : kNoMaskEnd;
      case '[':
        if (rest.starts_with("[TOC]") || rest.starts_with("[toc]")) return at + 5;
        if (rest.starts_with("[[")) return unless_link(find_close(at, end, "]]", 3), end);
        return rest.starts_with("[^") || rest.starts_with("[@") ? unless_link(find_close(at, end, "]", 4), end)
                                                                : kNoMaskEnd;
      default:
        return end_of_emoji(at, end);
    }
  }

  // kind: of the mark. Text before a place where the end of a mark was looked for in vain is not searched again.
  size_t find_close(size_t at, size_t end, std::string_view close, size_t kind) {
    if (at < blocked_[kind]) return kNoMaskEnd;
    const std::string_view rest = slice(at, end);
    const size_t found = rest.find(close, 2);
    const size_t bad = rest.substr(0, found).find('`');
    if (found < bad && found != rest.npos) return at + found + close.size();
    blocked_[kind] = at + std::min({found, bad, rest.size()});
    return kNoMaskEnd;
  }

  // "[@key]" and "[[x]]" may be texts of links.
  size_t unless_link(size_t close, size_t end) const {
    const bool is_link = close != kNoMaskEnd && close < end && (text_[close] == '(' || text_[close] == '[');
    return is_link ? kNoMaskEnd : close;
  }

  // As pandoc has it: no space behind the first "$" and before the second one, and no digit behind that.
  size_t end_of_formula(size_t at, size_t end) const {
    const bool is_in_word = at > 0 && is_masked_word(text_[at - 1]);
    if (is_in_word || at + 1 >= end || kMaskBlanks.find(text_[at + 1]) != kNoMaskEnd) return kNoMaskEnd;
    size_t close = at + 1, open = 0;  // brackets
    for (; close < end && text_[close] != '$'; close++) {
      const bool ends_label = open == 0 && slice(close, end).starts_with("](");  // of a link that began before
      if (text_[close] == '`' || ends_label) return kNoMaskEnd;
      if (text_[close] == '[') open++;
      if (text_[close] == ']' && open > 0) open--;
      if (text_[close] == '\\') close++;
    }
    if (close >= end || kMaskBlanks.find(text_[close - 1]) != kNoMaskEnd) return kNoMaskEnd;
    if (close + 1 < end && is_masked_word(text_[close + 1])) return kNoMaskEnd;
    return is_prose(slice(at + 1, close)) ? kNoMaskEnd : close + 1;
  }

  // Between two prices: "$5 and US$".
  static bool is_prose(std::string_view content) {
    if (content.find(' ') == content.npos || content.find_first_of("\\^_={}") != content.npos) return false;
    size_t run = 0;  // of letters
    for (const char c : content) {
      run = is_masked_word(c) && !(c >= '0' && c <= '9') ? run + 1 : 0;
      if (run == 2) return true;
    }
    return false;
  }

  // A formula may have several lines, none of them blank.
  size_t end_of_display(size_t at) {
    if (at < blocked_display_) return kNoMaskEnd;
    for (size_t i = at + 2; i < text_.size(); i++) {
      if (text_[i] == '\\') {
        i++;
      } else if (slice(i, i + 2) == "$$") {
        return i + 2;
      } else if (text_[i] == '`' || ((text_[i] == '\n') && is_blank_markdown(slice(i + 1, line_end(i + 1))))) {
        blocked_display_ = i;
        return kNoMaskEnd;
      }
    }
    blocked_display_ = text_.size();
    return kNoMaskEnd;
  }

  // ":tada:", not next to a word.
  size_t end_of_emoji(size_t at, size_t end) const {
    constexpr size_t kLongest = 64;
    if (at > 0 && at != done_ && std::string_view(" \t\r\n(*_|>~").find(text_[at - 1]) == kNoMaskEnd) return kNoMaskEnd;
    size_t close = at + 1;
    const auto is_in_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::string_view("_+-").find(c) != kNoMaskEnd;
    };
    while (close < end && close < at + kLongest && is_in_name(text_[close])) close++;
    const std::string_view name = slice(at + 1, close);
    const bool is_name = name == "+1" || name == "-1" || (!name.empty() && name[0] >= 'a' && name[0] <= 'z');
    const bool is_closed = close < end && text_[close] == ':' &&
                           (close + 1 == end || (!is_masked_word(text_[close + 1]) && text_[close + 1] != '/'));
    return is_name && is_closed ? close + 1 : kNoMaskEnd;
  }

  const std::string_view text_;
  MaskedMarkdown masked_ = {};
  ByteRange previous_ = {}, before_previous_ = {};  // lines
  size_t done_ = 0;                                 // a mark of several lines ends here
  std::array<size_t, 5> blocked_ = {};
  size_t blocked_display_ = 0;
};

}  // namespace

MaskedMarkdown mask_markdown(std::string_view document) { return MarkdownMasker(document).mask(); }

}  // namespace qkv
