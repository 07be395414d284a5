#include "documents/subtitles.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "documents/inline_run.h"

namespace qkv {
namespace {

struct SubtitleLine {
  size_t begin, content_end, end;  // bytes of the document; the line end follows the content
};

std::vector<SubtitleLine> find_subtitle_lines(std::string_view text) {
  std::vector<SubtitleLine> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t content_end = std::min(text.find_first_of("\r\n", begin), text.size());
    const size_t end = std::min(content_end + (text.substr(content_end).starts_with("\r\n") ? 2 : 1), text.size());
    lines.push_back({begin, content_end, end});
    begin = end;
  }
  return lines;
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// "00:00:01,000 --> 00:00:02,500", perhaps with a position behind.
bool is_time_line(std::string_view line) {
  line = without_blanks(line);
  return !line.empty() && is_decimal(line.front()) && line.substr(0, line.find("-->")).find(':') != line.npos &&
         line.find("-->") != line.npos;
}

bool is_number_line(std::string_view line) {
  line = without_blanks(line);
  return !line.empty() && std::ranges::all_of(line, is_decimal);
}

// "00:00:01.000", as it stands between words that are shown later.
bool is_time(std::string_view text) {
  return text.size() >= 9 && text.size() <= 16 && text.find_first_not_of("0123456789:.") == text.npos;
}

// Returns the length of the tag that the text begins with; 0 if there is none. has_end: whether this byte follows, so
// that it is not looked for again and again.
template <class HasEnd>
size_t subtitle_tag(std::string_view text, HasEnd has_end) {
  if (text.size() < 3) return 0;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool is_element =
      text[0] == '<' && (is_letter(text[1]) || (text[1] == '/' && is_letter(text[2])) ||
                         (is_decimal(text[1]) && is_time(text.substr(1, text.substr(0, 18).find('>') - 1))));
  if (!is_element && !text.starts_with("{\\")) return 0;
  const char end = is_element ? '>' : '}';
  return has_end(end) ? text.find(end) + 1 : 0;
}

// Sets the lines of a part, and how the first one ends.
void set_lines(TextPart& part, std::string_view bytes) {
  part.lines = 1;
  const size_t first = bytes.find_first_of("\r\n");
  if (first == bytes.npos) return;
  const bool has_both = bytes.substr(first).starts_with("\r\n");
  part.line_end = has_both ? "\r\n" : bytes[first] == '\r' ? "\r" : "\n";
  part.lines += static_cast<size_t>(std::ranges::count(bytes, part.line_end.back()));
}

// Returns the length of the dash that the text begins with; 0 if there is none, or before a digit.
size_t leading_dash(std::string_view text) {
  for (const std::string_view dash : {"-", "–", "—", "‐"})
    if (text.starts_with(dash)) return text.size() > dash.size() && is_decimal(text[dash.size()]) ? 0 : dash.size();
  return 0;
}

class SubtitleSplitter {
 public:
  explicit SubtitleSplitter(SplitText& document) : document_(document) {}

  void split() {
    const std::vector<SubtitleLine> lines = find_subtitle_lines(document_.bytes);
    const auto content = [&](size_t i) { return document_.slice(lines[i].begin, lines[i].content_end); };
    bool is_in_text = false;
    for (size_t i = 0; i < lines.size(); i++) {
      const bool is_next = is_number_line(content(i)) && i + 1 < lines.size() && is_time_line(content(i + 1));
      if (is_time_line(content(i)) || is_next || without_blanks(content(i)).empty()) {
        flush();
        is_in_text = is_time_line(content(i));
      } else if (is_in_text) {
        add_line(lines[i]);
      }
    }
    flush();
  }

 private:
  void add_line(const SubtitleLine& line) {
    const size_t first = run_.size();
    bool is_begun = false;  // text has been seen
    size_t text_begin = line.begin;
    const auto end_text = [&](size_t at) {
      if (text_begin < at) run_.push_back({RunItem::Kind::text, text_begin, at});
    };
    const std::string_view content = document_.slice(line.begin, line.content_end);
    const size_t last_angle = content.rfind('>') + 1, last_brace = content.rfind('}') + 1;  // 0: none
    for (size_t at = line.begin; at < line.content_end;) {
      const std::string_view rest = document_.slice(at, line.content_end);
      const size_t tag =
          subtitle_tag(rest, [&](char c) { return at - line.begin < (c == '>' ? last_angle : last_brace); });
      const size_t dash = !is_begun && tag == 0 ? leading_dash(rest) : 0;
      if (tag > 0 || dash > 0) {
        end_text(at);
        run_.push_back(tag > 0 ? tag_item(at, tag) : RunItem{RunItem::Kind::single, at, at + dash});
        if (dash > 0) flush_first(first);
      }
      is_begun |= tag == 0 && rest[0] != ' ' && rest[0] != '\t';
      at += std::max<size_t>({tag, dash, 1});
      if (tag > 0 || dash > 0) text_begin = at;
    }
    end_text(line.end);
  }

  RunItem tag_item(size_t at, size_t size) {
    const std::string_view tag = document_.slice(at, at + size);
    if (tag[0] == '{' || is_decimal(tag[1])) return {RunItem::Kind::single, at, at + size};
    const bool is_end = tag[1] == '/';
    const size_t begin = is_end ? 2 : 1;
    const std::string name = ascii_lower(tag.substr(begin, tag.find_first_of(" \t/>", begin) - begin));
    return {is_end ? RunItem::Kind::close : RunItem::Kind::open, at, at + size, &*names_.insert(name).first};
  }

  // Ends the part before item `first`, where another person speaks.
  void flush_first(size_t first) {
    const size_t before = document_.parts.size();
    add_part(document_, std::span(run_).first(first));
    for (size_t i = before; i < document_.parts.size(); i++)
      set_lines(document_.parts[i], document_.bytes_of(document_.parts[i]));
    run_.erase(run_.begin(), run_.begin() + static_cast<int64_t>(first));
  }

  void flush() { flush_first(run_.size()); }

  SplitText& document_;
  std::set<std::string> names_;
  std::vector<RunItem> run_;  // of the text that has been begun
};

}  // namespace

SplitText split_subtitles(std::string text, const TextSpelling& spelling) {
  SplitText document{.bytes = std::move(text), .spelling = &spelling};
  SubtitleSplitter(document).split();
  return document;
}

}  // namespace qkv
