// Markdown: CommonMark with GitHub's tables, strikethrough, task lists and autolinks, read by md4c, with marks of other
// dialects (src/documents/markdown/markdown_mask.h).
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "documents/document.h"
#include "documents/html.h"
#include "documents/inline_run.h"
#include "documents/markdown/markdown_block.h"
#include "documents/markdown/markdown_events.h"
#include "documents/markdown/markdown_mask.h"
#include "documents/markdown/markdown_spelling.h"

namespace qkv {
namespace {

using MarkdownKind = MarkdownEvent::Kind;

// A value of YAML between double quotes, into which translations of the front matter are written.
void append_markdown_value(std::string_view text, std::string& to) {
  for (const char c : text) {
    if (c == '"' || c == '\\') to += '\\';
    if (c == '\n')
      to += "\\n";
    else
      to += c;
  }
}

constexpr TextSpelling kMarkdownValueSpelling = {decode_nothing, append_markdown_value};

// Returns the bytes with each line end and the prefix of the line after it replaced by a line feed.
std::string without_markdown_prefixes(std::string_view bytes) {
  std::string without;
  bool is_prefix = false;
  for (const char c : bytes) {
    if (c == '\n') without += c;
    is_prefix = c == '\n' || c == '\r' || (is_prefix && (c == ' ' || c == '\t' || c == '>'));
    if (!is_prefix) without += c;
  }
  return without;
}

class MarkdownSplitter {
 public:
  explicit MarkdownSplitter(SplitText& document)
      : document_(document), masked_(mask_markdown(document.bytes)), reader_(document, masked_) {}

  void split() {
    split_front_matter();
    const std::vector<MarkdownEvent> events = read_events();
    MD_BLOCKTYPE block = MD_BLOCK_DOC;
    for (size_t i = 0; i < events.size(); i++) {
      if (events[i].kind == MarkdownKind::enter_block) block = events[i].block;
      if (events[i].kind == MarkdownKind::leave_block) block = MD_BLOCK_DOC;
      size_t end = i + 1;
      while (end < events.size() && !is_of_block(events[end])) end++;
      if (end > i + 1) split_block(std::span(events).subspan(i + 1, end - i - 1), block);
      i = end - 1;
    }
  }

 private:
  static bool is_of_block(const MarkdownEvent& event) {
    return event.kind == MarkdownKind::enter_block || event.kind == MarkdownKind::leave_block;
  }

  // Returns the events with their places in the document.
  std::vector<MarkdownEvent> read_events() const {
    std::string bytes;
    std::vector<size_t> begins;  // of the insertions in `bytes`
    size_t done = 0;
    for (const MarkdownInsertion& insertion : masked_.insertions) {
      bytes.append(masked_.bytes, done, insertion.at - done);
      begins.push_back(bytes.size());
      bytes += insertion.text;
      done = insertion.at;
    }
    bytes.append(masked_.bytes, done);
    const auto place = [&](size_t at) {
      const auto behind = static_cast<size_t>(std::ranges::upper_bound(begins, at) - begins.begin());
      if (behind == 0) return at;
      const MarkdownInsertion& last = masked_.insertions[behind - 1];
      const size_t end = begins[behind - 1] + last.text.size();
      return at < end ? last.at : last.at + (at - end);
    };
    std::vector<MarkdownEvent> events = read_markdown(bytes);
    for (MarkdownEvent& event : events)
      if (event.begin != MarkdownEvent::kNone) event.begin = place(event.begin), event.end = place(event.end);
    return events;
  }

  void split_block(std::span<const MarkdownEvent> events, MD_BLOCKTYPE type) {
    if (type == MD_BLOCK_CODE) return;
    if (type == MD_BLOCK_HTML) return split_html_block(events);
    const bool is_cell = type == MD_BLOCK_TH || type == MD_BLOCK_TD;
    const MarkdownBlock block = reader_.read(events, is_cell);
    for (const std::vector<RunItem>& run : block.runs) {
      const size_t before = document_.parts.size();
      add_part(document_, run);
      if (document_.parts.size() == before) continue;
      finish_part(document_.parts.back(), block, is_cell);
      enclose_labels(document_.parts.back(), block, run.back().end);
    }
  }

  void finish_part(TextPart& part, const MarkdownBlock& block, bool is_cell) {
    part.spelling = is_cell                    ? &kMarkdownCellSpelling
                    : block.has_hashes         ? &kMarkdownHeadingSpelling
                    : begins_line(part, block) ? &kMarkdownBlockSpelling
                                               : &kMarkdownInlineSpelling;
    for (InlineTag& tag : part.tags) {
      const auto label = std::ranges::lower_bound(block.labels, tag.begin, {}, &MarkdownLabel::at);
      const bool is_end = label != block.labels.end() && label->at == tag.begin;
      if (is_end && tag.kind == InlineTag::Kind::close) tag.written = written_label(*label);
    }
    set_lines(part, block);
  }

  // A link keeps its definition when its text changes: "[label]" becomes "[text][label]".
  std::string written_label(const MarkdownLabel& label) const {
    std::string name = without_markdown_prefixes(document_.slice(label.label.begin, label.label.end));
    std::ranges::replace(name, '\n', ' ');
    return fmt::format("][{}]", name);
  }

  // Does this for links around the whole text. end: of the run.
  void enclose_labels(TextPart& part, const MarkdownBlock& block, size_t end) {
    for (auto label = std::ranges::lower_bound(block.labels, part.end, {}, &MarkdownLabel::at);
         label != block.labels.end() && label->label.begin <= part.begin && label->end <= end; ++label) {
      part.closing += document_.slice(part.end, label->at);
      part.closing += written_label(*label);
      part.end = label->end;
    }
  }

  static bool begins_line(const TextPart& part, const MarkdownBlock& block) {
    if (part.begin == block.begin) return true;
    const auto behind = std::ranges::upper_bound(block.breaks, part.begin, {}, &MarkdownBreak::next);
    return behind != block.breaks.begin() && std::prev(behind)->next == part.begin;
  }

  // Gives a paragraph of several lines as many in a translation, with the prefix of its second line. One with hard
  // breaks has no other breaks in a translation.
  void set_lines(TextPart& part, const MarkdownBlock& block) {
    const auto first = std::ranges::lower_bound(block.breaks, part.begin, {}, &MarkdownBreak::begin);
    const auto last = std::ranges::lower_bound(block.breaks, part.end, {}, &MarkdownBreak::begin);
    if (first == last || std::any_of(first, last, [](const MarkdownBreak& b) { return b.is_hard; })) return;
    part.lines = 1 + static_cast<size_t>(last - first);
    part.line_end = document_.slice(first->begin, first->next);
    for (InlineTag& tag : part.tags) {
      const std::string_view bytes = document_.bytes_of(tag);
      if (bytes.find('\n') != bytes.npos) tag.written = without_markdown_prefixes(bytes);
    }
  }

  // Splits a block of HTML if its lines have no prefix. The first line must stay the beginning of such a block.
  void split_html_block(std::span<const MarkdownEvent> events) {
    size_t begin = MarkdownEvent::kNone, end = 0;
    for (const MarkdownEvent& event : events) {
      if (event.begin == MarkdownEvent::kNone) continue;
      const bool is_first = begin == MarkdownEvent::kNone;
      if (is_first) begin = event.begin;
      if (!is_first && document_.slice(end, event.begin).find_first_not_of("\r\n") != std::string_view::npos) return;
      end = event.end;
    }
    if (begin == MarkdownEvent::kNone) return;
    const SplitText html = split_html(std::string(document_.slice(begin, end)));
    for (const TextPart& part : html.parts) {
      if (part.begin == html.bytes.find_first_not_of(" \t\r\n")) continue;
      document_.parts.push_back(part);
      TextPart& added = document_.parts.back();
      added.begin += begin, added.end += begin;
      for (InlineTag& tag : added.tags) tag.begin += begin, tag.end += begin;
      added.spelling = &kHtmlSpelling;
    }
  }

  // Values of YAML that are plain, or between quotes without an escape.
  void split_front_matter() {
    const std::string_view bytes(document_.bytes);
    for (size_t at = bytes.starts_with("\uFEFF") ? 3 : 0; at < masked_.front_matter_end;) {
      const size_t end = std::min(bytes.find_first_of("\r\n", at), bytes.size());
      for (const std::string_view key : {"title:", "description:", "subtitle:", "summary:"})
        if (bytes.substr(at).starts_with(key)) split_value(at + key.size(), end);
      at = end + 1;
    }
  }

  void split_value(size_t begin, size_t end) {
    const std::string_view bytes(document_.bytes);
    begin = std::min(bytes.find_first_not_of(" \t", begin), end);
    while (end > begin && (bytes[end - 1] == ' ' || bytes[end - 1] == '\t')) end--;
    if (begin == end) return;
    const char quote = bytes[begin];
    if (quote == '"' || quote == '\'') {
      const std::string_view within = bytes.substr(begin + 1, end - begin - 2);
      if (end < begin + 3 || bytes[end - 1] != quote || within.find_first_of("\"'\\") != within.npos) return;
      add_value(begin + 1, end - 1, quote);
      return;
    }
    const size_t next = bytes.find_first_not_of("\r\n", end);
    const bool has_more_lines = next != bytes.npos && (bytes[next] == ' ' || bytes[next] == '\t');
    const std::string_view value = document_.slice(begin, end);
    const bool is_plain = !has_more_lines &&
                          std::string_view("[]{}&*!|>%@`#,?:-").find(value[0]) == std::string_view::npos &&
                          value.find(" #") == value.npos && value.find(": ") == value.npos && !value.ends_with(':');
    if (is_plain) add_value(begin, end, '\0');
  }

  void add_value(size_t begin, size_t end, char quote) {
    const RunItem item{RunItem::Kind::text, begin, end};
    const size_t before = document_.parts.size();
    add_part(document_, std::span(&item, 1));
    if (document_.parts.size() == before) return;
    TextPart& part = document_.parts.back();
    part.text = document_.slice(part.begin, part.end);
    part.spelling = &kMarkdownValueSpelling;
    if (quote == '"') return;
    if (quote == '\'') part.begin = begin - 1, part.end = end + 1;
    part.opening = part.closing = "\"";
  }

  SplitText& document_;
  const MaskedMarkdown masked_;
  MarkdownBlockReader reader_;
};

}  // namespace

namespace document_formats {

// Translated: paragraphs, headings, items of lists, cells of tables, the texts of links and images, the text of HTML
// blocks, and the fields title, description, subtitle and summary of the front matter. Everything else stays: code,
// destinations and titles of links, definitions, formulas, templates, inline HTML.
const DocumentFormat& markdown() {
  static const DocumentFormat format = {
      "markdown", "Markdown", {".md", ".markdown"}, [](std::string text, const auto&) {
        SplitText document{.bytes = std::move(text), .spelling = &kMarkdownBlockSpelling};
        MarkdownSplitter(document).split();
        return document;
      }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
