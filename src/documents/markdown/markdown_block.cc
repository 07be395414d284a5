#include "documents/markdown/markdown_block.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "documents/html.h"
#include "documents/html_tokens.h"
#include "documents/markdown/markdown_run.h"

namespace qkv {
namespace {

using EventKind = MarkdownEvent::Kind;
constexpr std::string_view kMarkdownBlanks = " \t", kMarkdownSpaces = " \t\r\n";

bool is_markdown_char(std::string_view set, char c) { return set.find(c) != set.npos; }

// Names of elements in the items of a run.
const std::string* name_of_span(MD_SPANTYPE span) {
  static const std::string emphasis = "*", strong = "**", deleted = "~~", link = "[", image = "![";
  switch (span) {
    case MD_SPAN_EM:
      return &emphasis;
    case MD_SPAN_STRONG:
      return &strong;
    case MD_SPAN_DEL:
      return &deleted;
    case MD_SPAN_IMG:
      return &image;
    default:
      return &link;
  }
}

}  // namespace

MarkdownBlock MarkdownBlockReader::read(std::span<const MarkdownEvent> events, bool is_cell) {
  block_ = {};
  run_.clear();
  spans_.clear();
  kept_elements_.clear();
  is_in_code_ = false;
  if (!read_events(events, is_cell)) return {};
  end_run();
  return std::move(block_);
}

bool MarkdownBlockReader::read_events(std::span<const MarkdownEvent> events, bool is_cell) {
  const auto is_placed = [](const MarkdownEvent& e) {
    return e.kind == EventKind::text && e.begin != MarkdownEvent::kNone;
  };
  const auto first = std::ranges::find_if(events, is_placed);
  if (first == events.end() || first->begin < floor_) return false;
  size_t rising = floor_;
  for (const MarkdownEvent& event : events) {
    if (!is_placed(event)) continue;
    if (event.begin < rising) return false;
    rising = event.end;
  }
  cursor_ = block_.begin = begin_of_content(first->begin, is_cell);
  floor_ = rising;
  size_t next = 0;  // event that has been read
  for (size_t i = 0; i < events.size(); i++) {
    if (!is_placed(events[i])) continue;
    for (; next < i; next++)
      if (!read_markup(events[next], events[i].begin)) return false;
    MarkdownEvent text = events[i];
    if (text.text == MD_TEXT_HTML) text.end = end_of_tag(events, i);
    if (!read_text(text)) return false;
    next = i + 1;
  }
  for (; next < events.size(); next++)
    if (!read_markup(events[next], document_.bytes.size())) return false;
  return true;
}

// Returns where the line's content begins: behind the marks of quotes, items, tasks and headings.
size_t MarkdownBlockReader::begin_of_line(size_t text) const {
  const std::string_view bytes(masked_.bytes);
  size_t at = text;
  while (at > floor_ && !is_markdown_char("\r\n", bytes[at - 1])) at--;
  bool is_behind_item = false;
  while (at < text) {
    if (is_markdown_char(" \t>", bytes[at])) {
      at++;
      continue;
    }
    size_t end = at + 1;
    if (bytes[at] >= '0' && bytes[at] <= '9') {
      end = std::min(bytes.find_first_not_of("0123456789", at), text);
      if (end >= text || !is_markdown_char(".)", bytes[end])) return at;
      end++;
    } else if (is_behind_item && bytes[at] == '[' && at + 3 < text && bytes[at + 2] == ']') {
      end = at + 3;
    } else if (!is_markdown_char("-+*", bytes[at])) {
      return at;
    }
    if (end >= text || !is_markdown_char(kMarkdownBlanks, bytes[end])) return at;
    is_behind_item = true;
    at = end;
  }
  return at;
}

size_t MarkdownBlockReader::begin_of_content(size_t text, bool is_cell) {
  const std::string_view bytes(masked_.bytes);
  size_t at = begin_of_line(text);
  if (is_cell) {
    for (size_t i = text; i > at; i--) {
      if (bytes[i - 1] != '|' || (i > 1 && bytes[i - 2] == '\\')) continue;
      at = i;
      break;
    }
    return std::min(bytes.find_first_not_of(kMarkdownBlanks, at), text);
  }
  const size_t hashes = run_length(at, '#', text);
  if (hashes > 0 && hashes <= 6 && at + hashes < text && is_markdown_char(kMarkdownBlanks, bytes[at + hashes])) {
    block_.has_hashes = true;
    at = std::min(bytes.find_first_not_of(kMarkdownBlanks, at + hashes), text);
  }
  return at;
}

bool MarkdownBlockReader::read_text(const MarkdownEvent& event) {
  if (event.text == MD_TEXT_CODE) {
    code_text_end_ = event.end;
    return is_in_code_;
  }
  const bool is_escaped = cursor_ + 1 == event.begin && masked_.bytes[cursor_] == '\\';
  if (cursor_ != event.begin && !(is_escaped && event.text == MD_TEXT_NORMAL)) return false;
  if (event.text == MD_TEXT_HTML) {
    add_html(event.begin, event.end);
    cursor_ = event.end;
  } else {
    add_text(event.end);
  }
  return true;
}

// Returns where a tag of HTML ends, and makes `event` its last one. Further lines of it are texts of their own.
size_t MarkdownBlockReader::end_of_tag(std::span<const MarkdownEvent> events, size_t& event) const {
  size_t end = events[event].end;
  bool is_in_tag = false;  // a line has ended
  for (size_t i = event + 1; i < events.size() && events[i].kind == EventKind::text; i++) {
    if (events[i].text != MD_TEXT_HTML) break;
    const bool is_placed = events[i].begin != MarkdownEvent::kNone;
    if (is_placed && !is_in_tag && document_.bytes[events[i].begin] == '<') break;  // the next tag
    if (is_placed) end = events[event = i].end;
    is_in_tag = !is_placed;
  }
  return end;
}

bool MarkdownBlockReader::read_markup(const MarkdownEvent& event, size_t limit) {
  if (event.kind == EventKind::text) return is_in_code_;  // without a place: a line end
  if (event.kind == EventKind::enter_span) return enter_span(event.span, limit);
  if (event.kind == EventKind::leave_span) return leave_span(event.span, limit);
  return read_break(event.kind == EventKind::hard_break, limit);
}

bool MarkdownBlockReader::enter_span(MD_SPANTYPE span, size_t limit) {
  const std::string_view bytes(masked_.bytes);
  const char c = cursor_ < limit ? bytes[cursor_] : '\0';
  if (span == MD_SPAN_CODE) {
    code_begin_ = code_text_end_ = cursor_;
    code_ticks_ = run_length(cursor_, '`', limit);
    is_in_code_ = code_ticks_ > 0;
    return is_in_code_;
  }
  Span entered{.begin = cursor_};
  size_t size = 0;
  if (span == MD_SPAN_EM || span == MD_SPAN_STRONG) {
    size = span == MD_SPAN_EM ? 1 : 2;
    if ((c != '*' && c != '_') || run_length(cursor_, c, limit) < size) return false;
  } else if (span == MD_SPAN_DEL) {
    size = run_length(cursor_, '~', limit);
    if (size < 1 || size > 2) return false;
  } else if (span == MD_SPAN_IMG) {
    entered.form = Span::Form::image;
    size = 2;
    if (document_.slice(cursor_, std::min(cursor_ + 2, limit)) != "![") return false;
  } else {
    entered.form = c == '[' ? Span::Form::link : c == '<' ? Span::Form::angle : Span::Form::bare;
    size = entered.form == Span::Form::bare ? 0 : 1;
  }
  entered.end = cursor_ + size;
  spans_.push_back(entered);
  add(RunItem::Kind::open, entered.end, name_of_span(span));
  return true;
}

bool MarkdownBlockReader::leave_span(MD_SPANTYPE span, size_t limit) {
  if (span == MD_SPAN_CODE) return leave_code(limit);
  if (span == MD_SPAN_A || span == MD_SPAN_IMG) return leave_link(limit);
  if (spans_.empty()) return false;
  const size_t size = spans_.back().end - spans_.back().begin;
  const char c = masked_.bytes[spans_.back().begin];
  spans_.pop_back();
  if (run_length(cursor_, c, limit) < size) return false;
  add(RunItem::Kind::close, cursor_ + size, name_of_span(span));
  return true;
}

// A code span ends at the next run of as many "`" as it begins with.
bool MarkdownBlockReader::leave_code(size_t limit) {
  if (!is_in_code_) return false;
  is_in_code_ = false;
  const std::string_view bytes(masked_.bytes);
  size_t at = std::max(code_text_end_, code_begin_ + code_ticks_);
  for (;;) {
    at = bytes.find('`', at);
    if (at >= limit) return false;
    const size_t run = run_length(at, '`', bytes.size());
    at += run;
    if (run == code_ticks_) break;
  }
  const size_t begin = take_markdown_role(document_, run_, code_begin_);
  run_.push_back({RunItem::Kind::single, begin, at});
  cursor_ = at;
  return true;
}

bool MarkdownBlockReader::leave_link(size_t limit) {
  if (spans_.empty()) return false;
  const Span span = spans_.back();
  spans_.pop_back();
  const char c = cursor_ < limit ? masked_.bytes[cursor_] : '\0';
  if (span.form == Span::Form::bare || span.form == Span::Form::angle) {
    if (span.form == Span::Form::angle && c != '>') return false;
    cursor_ += span.form == Span::Form::angle ? 1 : 0;
    collapse(span.begin, cursor_);
    return true;
  }
  if (span.form == Span::Form::marks || c != ']') return false;
  const size_t end = end_of_link(cursor_ + 1, limit);
  if (end == cursor_ + 1 || document_.slice(cursor_, end) == "][]")
    block_.labels.push_back({cursor_, end, {span.end, cursor_}});
  add(RunItem::Kind::close, end, name_of_span(span.form == Span::Form::image ? MD_SPAN_IMG : MD_SPAN_A));
  return true;
}

// Returns where a link ends whose "]" is before `at`: behind "(destination)", "[label]" or nothing.
size_t MarkdownBlockReader::end_of_link(size_t at, size_t limit) const {
  const std::string_view bytes(masked_.bytes);
  if (at >= limit) return at;
  if (bytes[at] == '(') {
    const size_t end = end_of_destination(at + 1, limit);
    return end == bytes.npos ? at : end;
  }
  if (bytes[at] != '[') return at;
  for (size_t i = at + 1; i < limit && bytes[i] != '['; i++) {
    if (bytes[i] == ']') return i + 1;
    if (bytes[i] == '\\') i++;
  }
  return at;
}

size_t MarkdownBlockReader::skip_space(size_t at, size_t limit) const {
  while (at < limit && is_markdown_char(kMarkdownSpaces, masked_.bytes[at])) {
    const bool ends_line = is_markdown_char("\r\n", masked_.bytes[at++]);
    while (ends_line && at < limit && is_markdown_char(" \t>", masked_.bytes[at])) at++;
  }
  return at;
}

// Returns where "destination "title")" ends; npos if it does not end as a link does.
size_t MarkdownBlockReader::end_of_destination(size_t at, size_t limit) const {
  const std::string_view bytes(masked_.bytes);
  const auto find = [&](size_t from, char close) {
    for (; from < limit && bytes[from] != close; from++)
      if (bytes[from] == '\\') from++;
    return from + 1;
  };
  at = skip_space(at, limit);
  if (at < limit && bytes[at] == '<') {
    at = find(at + 1, '>');
  } else {
    for (size_t depth = 0; at < limit && !is_markdown_char(kMarkdownSpaces, bytes[at]); at++) {
      if (bytes[at] == ')' && depth-- == 0) break;
      if (bytes[at] == '(') depth++;
      if (bytes[at] == '\\') at++;
    }
  }
  at = skip_space(at, limit);
  if (at < limit && is_markdown_char("\"'(", bytes[at]))
    at = skip_space(find(at + 1, bytes[at] == '(' ? ')' : bytes[at]), limit);
  return at < limit && bytes[at] == ')' ? at + 1 : bytes.npos;
}

bool MarkdownBlockReader::read_break(bool is_hard, size_t limit) {
  const std::string_view bytes(masked_.bytes);
  size_t at = cursor_;
  while (at < limit && is_markdown_char(" \t\\", bytes[at])) at++;
  const size_t begin = at;
  if (at < limit && bytes[at] == '\r') at++;
  if (at < limit && bytes[at] == '\n' && (at == begin || bytes[begin] == '\r')) at++;
  if (at == begin) return false;
  const size_t end = at;
  while (at < limit && is_markdown_char(" \t>", bytes[at])) at++;
  block_.breaks.push_back({begin, end, at, is_hard});
  if (is_hard) {
    const bool ends_sentence = !run_.empty() && run_.back().kind == RunItem::Kind::text &&
                               ends_like_sentence(document_.slice(run_.back().begin, run_.back().end));
    if (ends_sentence && spans_.empty()) end_run();
    run_.push_back({RunItem::Kind::line_break, cursor_, at});
  } else {
    run_.push_back({RunItem::Kind::text, begin, end});
  }
  cursor_ = at;
  return true;
}

size_t MarkdownBlockReader::run_length(size_t at, char c, size_t limit) const {
  size_t end = at;
  while (end < limit && masked_.bytes[end] == c) end++;
  return end - at;
}

void MarkdownBlockReader::add(RunItem::Kind kind, size_t end, const std::string* name) {
  run_.push_back({kind, cursor_, end, name});
  cursor_ = end;
}

// Adds the text from the cursor on, of which masked marks are single items.
void MarkdownBlockReader::add_text(size_t end) {
  const std::vector<ByteRange>& kept = masked_.kept;
  while (next_kept_ < kept.size() && kept[next_kept_].end <= cursor_) next_kept_++;
  while (cursor_ < end) {
    const bool has_kept = next_kept_ < kept.size() && kept[next_kept_].begin < end;
    const size_t text_end = has_kept ? std::max(kept[next_kept_].begin, cursor_) : end;
    if (cursor_ < text_end) {
      if (!run_.empty() && run_.back().kind == RunItem::Kind::text && run_.back().end == cursor_)
        run_.back().end = text_end;
      else
        run_.push_back({RunItem::Kind::text, cursor_, text_end});
      cursor_ = text_end;
    }
    if (!has_kept) break;
    const size_t kept_end = std::min(kept[next_kept_].end, end);
    if (cursor_ > kept[next_kept_].begin)  // a further line of it
      collapse(std::max(kept[next_kept_].begin, block_.begin), kept_end);
    else
      run_.push_back({RunItem::Kind::single, cursor_, kept_end});
    cursor_ = kept_end;
    if (kept[next_kept_].end > end) break;
    next_kept_++;
  }
}

// Makes one item of all that begin in the range.
void MarkdownBlockReader::collapse(size_t begin, size_t end) {
  while (!run_.empty() && run_.back().begin >= begin) run_.pop_back();
  while (!block_.breaks.empty() && block_.breaks.back().begin >= begin) block_.breaks.pop_back();
  run_.push_back({RunItem::Kind::single, begin, end});
}

void MarkdownBlockReader::add_html(size_t begin, size_t end) {
  const std::string tag(document_.slice(begin, end));
  HtmlToken token;
  HtmlTokenizer(tag).next(token, false);
  const bool is_tag = token.kind == HtmlToken::Kind::start || token.kind == HtmlToken::Kind::end;
  RunItem item{RunItem::Kind::single, begin, end};
  if (!is_tag || is_block_element(token.name)) {
    end_run();
    return;
  }
  const bool is_start = token.kind == HtmlToken::Kind::start;
  if (token.name == "br") {
    item.kind = RunItem::Kind::line_break;
  } else if (!token.is_self_closing && !is_void_element(token.name)) {
    item.kind = is_start ? RunItem::Kind::open : RunItem::Kind::close;
    item.name = &*names_.insert("<" + token.name).first;
  }
  run_.push_back(item);
  constexpr size_t kDeepest = 64;
  const bool is_index = (token.name == "sup" || token.name == "sub") && begin > 0 &&
                        !is_markdown_char(" \t\r\n>", document_.bytes[begin - 1]);  // 2<sup>31</sup>
  const bool is_kept = is_kept_element(token.name) || token.is_untranslated || is_index;
  if (item.kind == RunItem::Kind::open && is_kept && kept_elements_.size() < kDeepest) {
    kept_elements_.push_back(item);
  } else if (item.kind == RunItem::Kind::close) {
    const auto found = std::find_if(kept_elements_.rbegin(), kept_elements_.rend(),
                                    [&](const RunItem& element) { return element.name == item.name; });
    if (found == kept_elements_.rend()) return;
    collapse(found->begin, end);
    kept_elements_.erase(std::prev(found.base()), kept_elements_.end());
  }
}

void MarkdownBlockReader::end_run() {
  kept_elements_.clear();
  settle_markdown_run(document_, run_);
  block_.runs.push_back(std::move(run_));
  run_.clear();
}

}  // namespace qkv
