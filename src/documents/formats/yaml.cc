// YAML files of texts, such as those of user interfaces: the strings that are values of mappings or items of sequences
// are translated. Keys, anchors, tags, aliases and comments stay, as do numbers, dates, booleans, scalars with tags of
// their own ("!secret x"), and strings that are not prose. Each line of a literal block is a part, as is each
// paragraph of a folded one.
#include <unicode/utf8.h>
#include <yaml.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "documents/document.h"
#include "documents/strings/string_part.h"
#include "documents/strings/yaml_spelling.h"

namespace qkv {
namespace {

constexpr size_t kYamlTextDepth = 64, kYamlTagDirectives = 64;  // libyaml takes time that grows with each of them
constexpr size_t kYamlIndentation = 256;                        // of paragraphs that are broken into lines again

constexpr std::string_view kYamlNameCharacters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-";

constexpr std::string_view kYamlMark = "\uFEFF";  // libyaml skips it where a line begins
constexpr std::string_view kYamlLineEnds[] = {"\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029"};

// Returns the bytes of the line end that a text begins with, or 0.
size_t yaml_line_end(std::string_view text) {
  for (const std::string_view line_end : kYamlLineEnds)
    if (text.starts_with(line_end)) return line_end.size();
  return 0;
}
bool begins_yaml_line(std::string_view text, size_t at) {
  const auto ends = [&](std::string_view line_end) { return text.substr(0, at).ends_with(line_end); };
  return at == 0 || std::ranges::any_of(kYamlLineEnds, ends);
}

// Returns the bytes of white space that a text begins with, which includes line ends.
size_t yaml_space(std::string_view text) {
  size_t size = 0;
  while (size < text.size()) {
    const bool is_blank = text[size] == ' ' || text[size] == '\t';
    const size_t next = is_blank ? 1 : yaml_line_end(text.substr(size));
    if (next == 0) break;
    size += next;
  }
  return size;
}

// Events of libyaml, with their places as bytes: it counts characters.
class YamlTextEvents {
 public:
  explicit YamlTextEvents(std::string_view text) : text_(text) {
    if (text.starts_with(kYamlMark)) byte_ = kYamlMark.size();
    if (!yaml_parser_initialize(&parser_)) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()) + byte_,
                                 text.size() - byte_);
  }
  ~YamlTextEvents() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  YamlTextEvents(const YamlTextEvents&) = delete;
  YamlTextEvents& operator=(const YamlTextEvents&) = delete;

  const yaml_event_t& next() {
    yaml_event_delete(&event_);
    event_ = {};
    if (!yaml_parser_parse(&parser_, &event_))
      fail("line {}: not valid YAML: {}", parser_.problem_mark.line + 1,
           parser_.problem ? parser_.problem : "cannot be read");
    return event_;
  }

  size_t line() const { return event_.start_mark.line + 1; }

  // Returns the bytes of the scalar that was read last, with its quotes, without its anchor and tag. To be called in
  // the order of the text.
  ByteRange scalar_bytes() {
    size_t begin = byte_of(event_.start_mark.index);
    if (event_.data.scalar.anchor || event_.data.scalar.tag) begin = skip_properties(begin);
    return {begin, byte_of(event_.end_mark.index)};
  }

 private:
  size_t byte_of(size_t index) {
    for (; index_ < index && byte_ < text_.size(); index_++) {
      auto next = static_cast<int64_t>(byte_);
      U8_FWD_1(text_.data(), next, std::ssize(text_));
      byte_ = static_cast<size_t>(next);
    }
    return byte_;
  }

  // Tags end with white space, anchors where their name ends; comments may stand behind them.
  size_t skip_properties(size_t at) const {
    while (at < text_.size()) {
      const char c = text_[at];
      if (c == '&')
        at = std::min(text_.find_first_not_of(kYamlNameCharacters, at + 1), text_.size());
      else if (c == '!')
        while (at < text_.size() && yaml_space(text_.substr(at)) == 0) at++;
      else if (c == '#')
        while (at < text_.size() && yaml_line_end(text_.substr(at)) == 0) at++;
      else if (const size_t space = yaml_space(text_.substr(at)))
        at += space;
      else if (begins_yaml_line(text_, at) && text_.substr(at).starts_with(kYamlMark))
        at += kYamlMark.size();
      else
        break;
    }
    return at;
  }

  const std::string_view text_;
  yaml_parser_t parser_ = {};
  yaml_event_t event_ = {};
  size_t byte_ = 0, index_ = 0;  // of the same character
};

// A line of a block scalar.
struct YamlBlockLine {
  size_t begin, end;  // bytes without the indentation and the line end
  size_t next;        // byte after the line end
};

// Adds the parts of a block scalar. Its places are found by hand, as libyaml joins its lines.
class YamlBlock {
 public:
  // bytes: from the "|" or ">" on.
  YamlBlock(SplitText& document, ByteRange bytes, std::string_view value, bool is_folded)
      : document_(document), is_folded_(is_folded) {
    for (size_t at = line_at(bytes.begin).next; at < bytes.end; at = lines_.back().next) lines_.push_back(line_at(at));
    const size_t indentation = indentation_of(value);
    for (YamlBlockLine& line : lines_) line.begin = std::min(line.begin + indentation, line.end);
    indentation_ = indentation;
  }

  void add_parts() {
    for (size_t first = 0; first < lines_.size();) {
      size_t last = first;
      while (is_folded_ && is_filled(last) && last + 1 < lines_.size() && is_filled(last + 1)) last++;
      if (last == first)
        add_line(lines_[first]);
      else
        add_paragraph(first, last);
      first = last + 1;
    }
  }

 private:
  YamlBlockLine line_at(size_t begin) const {
    const std::string_view text = document_.bytes;
    for (size_t end = begin; end < text.size(); end++)
      if (const size_t line_end = yaml_line_end(text.substr(end))) return {begin, end, end + line_end};
    return {begin, text.size(), text.size()};
  }

  size_t spaces_at(const YamlBlockLine& line) const {
    const std::string_view text = document_.slice(line.begin, line.end);
    return std::min(text.find_first_not_of(' '), text.size());
  }

  // The first line with other characters than spaces has the indentation and perhaps spaces of the value.
  size_t indentation_of(std::string_view value) const {
    const size_t visible = std::min(value.find_first_not_of(" \n"), value.size());
    const size_t last = value.substr(0, visible).find_last_not_of(' ');
    const size_t spaces = last == value.npos ? visible : visible - last - 1;
    for (const YamlBlockLine& line : lines_) {
      const size_t before = spaces_at(line);
      if (before < line.end - line.begin) return before - std::min(spaces, before);
    }
    return 0;
  }

  // Whether a line belongs to a paragraph, which is folded: it is not empty and not indented further.
  bool is_filled(size_t i) const {
    const YamlBlockLine& line = lines_[i];
    return line.begin < line.end && document_.bytes[line.begin] != ' ' && document_.bytes[line.begin] != '\t';
  }

  void add_line(const YamlBlockLine& line) {
    const std::string_view text = without_outer_space(document_.slice(line.begin, line.end));
    const auto begin = static_cast<size_t>(text.data() - document_.bytes.data());
    add_string_part(document_, {begin, begin + text.size()}, text,
                    is_folded_ ? kYamlFoldedSpelling : kYamlBlockSpelling);
  }

  void add_paragraph(size_t first, size_t last) {
    std::string text;
    for (size_t i = first; i <= last; i++) {
      if (i > first) text += ' ';
      text += without_outer_space(document_.slice(lines_[i].begin, lines_[i].end));
    }
    const size_t parts = document_.parts.size();
    add_string_part(document_, {lines_[first].begin, lines_[last].end}, text, kYamlFoldedSpelling);
    if (document_.parts.size() == parts || indentation_ > kYamlIndentation) return;
    static const std::string line_end = "\r\n" + std::string(kYamlIndentation, ' ');
    const bool has_return = document_.slice(0, lines_[first].next).ends_with("\r\n");
    document_.parts.back().lines = last - first + 1;
    document_.parts.back().line_end =
        std::string_view(line_end).substr(has_return ? 0 : 1, indentation_ + (has_return ? 2 : 1));
  }

  SplitText& document_;
  const bool is_folded_;
  std::vector<YamlBlockLine> lines_;
  size_t indentation_ = 0;
};

class YamlSplitter {
 public:
  explicit YamlSplitter(SplitText& document) : document_(document), events_(document.bytes) {}

  void split() {
    for (;;) {
      const yaml_event_t& event = events_.next();
      switch (event.type) {
        case YAML_STREAM_END_EVENT:
          return;
        case YAML_MAPPING_START_EVENT:
          open(true, event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
          break;
        case YAML_SEQUENCE_START_EVENT:
          open(false, event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
          break;
        case YAML_MAPPING_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
          open_.pop_back();
          break;
        case YAML_ALIAS_EVENT:
          begin_node();
          break;
        case YAML_SCALAR_EVENT:
          if (!begin_node()) add_scalar(event);
          break;
        default:
          break;  // of a document
      }
    }
  }

 private:
  struct Collection {
    bool is_mapping, is_flow;
    bool is_kept;             // in a key
    bool is_key_next = true;  // of a mapping
  };

  // Returns whether a node that begins is a key, in a key, or in no collection.
  bool begin_node() {
    if (open_.empty()) return true;
    Collection& collection = open_.back();
    const bool is_key = collection.is_mapping && collection.is_key_next;
    collection.is_key_next = !collection.is_key_next;
    return collection.is_kept || is_key;
  }

  void open(bool is_mapping, bool is_flow) {
    if (open_.size() == kYamlTextDepth)
      fail("line {}: YAML nested more than {} levels deep", events_.line(), kYamlTextDepth);
    const bool is_kept = !open_.empty() && begin_node();
    open_.push_back({is_mapping, is_flow, is_kept});
  }

  void add_scalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    const std::string_view tag = scalar.tag ? reinterpret_cast<const char*>(scalar.tag) : "!";
    const std::string_view value(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const bool is_plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if ((tag != "!" && tag != YAML_STR_TAG) || !is_prose(value)) return;
    if (is_plain && !scalar.tag && is_yaml_value(value)) return;
    const ByteRange bytes = events_.scalar_bytes();
    const size_t parts = document_.parts.size();
    if (scalar.style == YAML_LITERAL_SCALAR_STYLE || scalar.style == YAML_FOLDED_SCALAR_STYLE)
      YamlBlock(document_, bytes, value, scalar.style == YAML_FOLDED_SCALAR_STYLE).add_parts();
    else if (scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE || without_outer_space(value).size() < value.size())
      add_string_part(document_, bytes, value, kYamlDoubleSpelling, "\"");
    else if (scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE)
      add_string_part(document_, bytes, value, kYamlSingleSpelling);
    else
      add_plain(bytes, value);
    // A plain scalar that begins with ":" or "?" may touch its anchor, others may not.
    const bool touches_anchor =
        bytes.begin > 0 && kYamlNameCharacters.find(document_.bytes[bytes.begin - 1]) != std::string_view::npos;
    if (touches_anchor && document_.parts.size() > parts) document_.parts[parts].opening.insert(0, " ");
  }

  // Behind a plain scalar, tabs may stand in lines before the next token, but not behind a quoted one.
  void add_plain(ByteRange bytes, std::string_view value) {
    const std::string_view text = document_.bytes;
    const size_t parts = document_.parts.size();
    add_string_part(document_, bytes, value, open_.back().is_flow ? kYamlFlowSpelling : kYamlPlainSpelling);
    std::string space(text.substr(bytes.end, yaml_space(text.substr(bytes.end))));
    const size_t blanks = std::min(space.find_first_not_of(" \t"), space.size());  // before the first line end
    if (document_.parts.size() == parts || space.find('\t', blanks) == space.npos) return;
    document_.parts.back().end += space.size();
    std::ranges::replace(space, '\t', ' ');
    document_.parts.back().closing = space;
  }

  SplitText& document_;
  YamlTextEvents events_;
  std::vector<Collection> open_;
};

SplitText split_yaml(std::string text) {
  SplitText document{.bytes = std::move(text)};
  size_t directives = 0;
  for (size_t at = 0; (at = document.bytes.find("%TAG", at)) != document.bytes.npos; at++)
    directives += begins_yaml_line(document.bytes, at);
  if (directives > kYamlTagDirectives) fail("YAML with {} tag directives (at most {})", directives, kYamlTagDirectives);
  YamlSplitter(document).split();
  return document;
}

}  // namespace

namespace document_formats {

const DocumentFormat& yaml() {
  static const DocumentFormat format = {"yaml", "YAML files", {".yaml", ".yml"}, [](std::string text, const auto&) {
                                          return split_yaml(std::move(text));
                                        }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
