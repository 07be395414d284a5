#include "documents/markdown/markdown_spelling.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"
#include "documents/html_tokens.h"
#include "documents/strings/string_part.h"

namespace qkv {
namespace {

constexpr std::string_view kMarkdownPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

bool is_markdown_punctuation(char c) { return kMarkdownPunctuation.find(c) != kMarkdownPunctuation.npos; }
bool is_markdown_digit(char c) { return c >= '0' && c <= '9'; }

// Returns the length of the reference at the beginning, which needs a semicolon; 0 if there is none.
size_t markdown_reference_length(std::string_view text) {
  constexpr size_t kLongest = 50;
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (text.size() < 3 || text[0] != '&') return 0;
  const bool is_number = text[1] == '#', is_hex = is_number && (text[2] == 'x' || text[2] == 'X');
  const size_t begin = is_hex ? 3 : is_number ? 2 : 1;
  const std::string_view accepted = is_hex ? kDigits : is_number ? kDigits.substr(0, 10) : kLetters;
  const size_t end = std::min(text.substr(0, kLongest).find_first_not_of(accepted, begin), text.size());
  const size_t longest = is_hex ? 6 : is_number ? 7 : kLongest;
  return end > begin && end - begin <= longest && end < text.size() && text[end] == ';' ? end + 1 : 0;
}

size_t decode_markdown(std::string_view text, std::string& to) {
  if (text.size() > 1 && text[0] == '\\' && is_markdown_punctuation(text[1])) {
    to += text[1];
    return 2;
  }
  const size_t length = markdown_reference_length(text);
  if (length == 0) return 0;
  std::string decoded;
  if (decode_reference(text.substr(0, length), decoded) != length) return 0;
  to += decoded;
  return length;
}

UChar32 first_markdown_code(std::string_view text) {
  int32_t at = 0;
  UChar32 code;
  U8_NEXT_OR_FFFD(text.data(), at, static_cast<int32_t>(std::min<size_t>(text.size(), U8_MAX_LENGTH)), code);
  return code;
}

bool is_markdown_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }
bool ends_markdown_mark(char c) { return is_markdown_blank(c) || c == '\0'; }

// Returns the character of a line that needs a backslash, as the line would begin another block; npos if none does.
size_t markdown_mark_at_line_start(std::string_view line) {
  if (line.empty()) return line.npos;
  const auto at = [&](size_t i) { return i < line.size() ? line[i] : '\0'; };
  const char c = line[0], next = at(1);
  if (is_markdown_digit(c)) {  // "1." and "1)"
    const size_t end = std::min(line.find_first_not_of("0123456789"), line.size());
    return (at(end) == '.' || at(end) == ')') && end <= 9 && ends_markdown_mark(at(end + 1)) ? end : line.npos;
  }
  const size_t run = std::min(line.find_first_not_of(c), line.size());
  const bool is_mark = (c == '#' && run <= 6 && ends_markdown_mark(at(run))) || c == '>' || c == '|' || c == '*' ||
                       c == '_' || c == '~' || (c == '%' && next == ' ') ||
                       ((c == '-' || c == '+' || c == '=') && (ends_markdown_mark(next) || next == c)) ||
                       (c == ':' && (ends_markdown_mark(next) || next == ':' || next == '-')) ||
                       (c == '!' && next == '!') || (c == '?' && next == '?');
  return is_mark ? 0 : line.npos;
}

enum class MarkdownPlace { block, within, heading, cell };

// Appends a text. The end or a tag follows it.
class MarkdownAppender {
 public:
  MarkdownAppender(std::string_view text, MarkdownPlace place, std::string& to) : text_(text), place_(place), to_(to) {}

  void append() {
    for (at_ = 0; at_ < text_.size(); at_++) {
      const char c = text_[at_];
      if (begins_line() && append_at_line_start()) continue;
      if (c == '\n' && (place_ == MarkdownPlace::heading || place_ == MarkdownPlace::cell)) {
        to_ += ' ';
        continue;
      }
      if (needs_escape(c)) to_ += '\\';
      to_ += c;
    }
  }

 private:
  bool begins_line() const { return to_.empty() ? place_ == MarkdownPlace::block : to_.back() == '\n'; }

  // The character before and after this one; '\n' at the beginning, '\0' at the end.
  char before() const { return at_ > 0 ? text_[at_ - 1] : to_.empty() ? '\n' : to_.back(); }
  char after() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  bool is_in_word() const {
    const std::string_view written = at_ > 0 ? text_.substr(0, at_) : std::string_view(to_);
    if (written.empty() || at_ + 1 >= text_.size()) return false;
    return u_isalnum(last_code_point(written)) && u_isalnum(first_markdown_code(text_.substr(at_ + 1)));
  }

  bool needs_escape(char c) const {
    switch (c) {
      case '`':
      case '[':
      case ']':
        return true;
      case '\\':
        return at_ + 1 == text_.size() || text_[at_ + 1] == '\n' || is_markdown_punctuation(text_[at_ + 1]);
      case '*':
      case '~':
        return !is_markdown_blank(before()) || !is_markdown_blank(after());
      case '_':
        return !(is_markdown_blank(before()) && is_markdown_blank(after())) && !is_in_word();
      case '<':
        return !is_markdown_blank(after()) && !is_markdown_digit(after()) && after() != '=';
      case '&':
        return markdown_reference_length(text_.substr(at_)) > 0 || at_ + 1 == text_.size();
      case '$':
        return !is_markdown_blank(before()) && !is_markdown_digit(after());
      case '{':
        return std::string_view("{%#.:").find(after()) != std::string_view::npos;
      case '#':
        return place_ == MarkdownPlace::heading && is_markdown_blank(before()) &&
               (ends_markdown_mark(after()) || after() == '#');
      case '|':
        return place_ == MarkdownPlace::cell;
      default:
        return false;
    }
  }

  // Returns whether characters have been appended.
  bool append_at_line_start() {
    const char c = text_[at_];
    if (c == ' ' || c == '\t') {
      to_ += c == ' ' ? "&#32;" : "&#9;";
      return true;
    }
    const size_t mark = markdown_mark_at_line_start(text_.substr(at_));
    if (mark == std::string_view::npos) return false;
    to_ += text_.substr(at_, mark);
    at_ += mark;
    to_ += '\\';
    to_ += text_[at_];
    return true;
  }

  const std::string_view text_;
  const MarkdownPlace place_;
  std::string& to_;
  size_t at_ = 0;
};

template <MarkdownPlace place>
void append_markdown(std::string_view text, std::string& to) {
  MarkdownAppender(text, place, to).append();
}

// Makes the marks of emphasis mean the same among the characters of a translation.
//
// "**" opens only before a character that is no space, and before punctuation only behind a space or punctuation; so
// "中文**“强调”**中文" is no emphasis. The letter next to it is then written as a reference, which begins and
// ends with punctuation. Elements without text go, as "****" is no markup, and a comment separates "**a**" and "**b**".
class MarkdownRepairer {
 public:
  MarkdownRepairer(const SplitText& document, const TextPart& part, std::span<const WrittenTag> tags,
                   std::string& written)
      : document_(document), part_(part), written_(written), tags_(tags.begin(), tags.end()) {}

  void repair() {
    drop_empty();
    escape_after_dropped();
    replace_breaks();
    separate_code();
    for (const WrittenTag& tag : kept_) {
      escape_exclamation(tag);
      escape_after_bracket(tag);
    }
    constexpr int kRounds = 4;  // a reference is punctuation for the marks on its other side
    const std::vector<DelimiterRun> runs = find_runs();
    size_t before = 0;
    for (int round = 0; round < kRounds; round++) {
      for (size_t i = 0; i < runs.size(); i++) separate(runs[i], i + 1 < runs.size() ? &runs[i + 1] : nullptr);
      if (edits_.size() == before) break;
      before = edits_.size();
    }
    apply();
  }

 private:
  struct DelimiterRun {
    size_t begin, end;
    char mark;
    bool opens;
  };
  struct Edit {
    size_t size;  // bytes that are replaced
    std::string text;
  };

  char mark_of(const WrittenTag& tag) const {
    const char c = written_[tag.begin];
    const bool is_run = tag.begin < tag.end && part_.tags[tag.tag].kind != InlineTag::Kind::single &&
                        (c == '*' || c == '_' || c == '~');
    return is_run ? c : '\0';
  }

  // Drops marks around nothing.
  void drop_empty() {
    for (const WrittenTag& tag : tags_) {
      const bool closes = mark_of(tag) != '\0' && !kept_.empty() && mark_of(kept_.back()) != '\0' &&
                          part_.tags[tag.tag].kind == InlineTag::Kind::close &&
                          part_.tags[tag.tag].partner == kept_.back().tag &&
                          end_of_dropped(kept_.back().end) == tag.begin;
      if (!closes) {
        kept_.push_back(tag);
        continue;
      }
      edits_[kept_.back().begin] = {kept_.back().end - kept_.back().begin, ""};
      edits_[tag.begin] = {tag.end - tag.begin, ""};
      dropped_[kept_.back().begin] = tag.end;
      kept_.pop_back();
    }
  }

  // Returns where the dropped elements from here on end.
  size_t end_of_dropped(size_t at) const {
    for (auto found = dropped_.find(at); found != dropped_.end(); found = dropped_.find(at)) at = found->second;
    return at;
  }

  // A text is at the beginning of its line if the marks before it are dropped.
  void escape_after_dropped() {
    for (const auto& [begin, end] : dropped_) {
      if (begin > 0 && written_[begin - 1] != '\n') continue;
      const size_t at = end_of_dropped(end);
      const size_t mark = markdown_mark_at_line_start(std::string_view(written_).substr(at));
      if (mark != std::string::npos && !is_in_tag(at)) edits_.try_emplace(at + mark, Edit{0, "\\"});
    }
  }

  std::vector<DelimiterRun> find_runs() const {
    std::vector<DelimiterRun> runs;
    for (const WrittenTag& tag : kept_) {
      const char mark = mark_of(tag);
      if (mark == '\0') continue;
      const bool opens = part_.tags[tag.tag].kind == InlineTag::Kind::open;
      if (!runs.empty() && runs.back().end == tag.begin && runs.back().mark == mark && runs.back().opens == opens)
        runs.back().end = tag.end;
      else
        runs.push_back({tag.begin, tag.end, mark, opens});
    }
    return runs;
  }

  struct Neighbour {
    size_t begin = 0, end = 0;
    UChar32 code = ' ';

    bool is_space() const { return u_isUWhiteSpace(code) != 0; }
    bool is_punctuation() const {
      return u_ispunct(code) != 0 || (code < 128 && code > 0 && is_markdown_punctuation(static_cast<char>(code)));
    }
    // Symbols are punctuation since version 0.31 of CommonMark.
    bool may_be_punctuation() const { return is_punctuation() || (U_GET_GC_MASK(code) & U_GC_S_MASK) != 0; }
  };

  // Returns the character that ends or begins here, as it will be written.
  Neighbour before(size_t at) const {
    if (at == 0) return {};
    const UChar32 code = last_code_point(std::string_view(written_).substr(0, at));
    return as_written({at - std::min(at, to_size(U8_LENGTH(code))), at, code}, ';');
  }
  Neighbour after(size_t at) const {
    if (at == written_.size()) return {};
    const UChar32 code = first_markdown_code(std::string_view(written_).substr(at));
    return as_written({at, std::min(at + to_size(U8_LENGTH(code)), written_.size()), code}, '&');
  }

  // edge: of a reference, on this side of the character.
  Neighbour as_written(Neighbour found, char edge) const {
    const auto edit = edits_.find(found.begin);
    if (edit != edits_.end() && edit->second.size > 0 && !edit->second.text.empty()) found.code = edge;
    return found;
  }

  void separate(const DelimiterRun& run, const DelimiterRun* next) {
    const Neighbour left = before(run.begin), right = after(run.end);
    if (next && next->begin == run.end && next->mark == run.mark) {
      edits_.try_emplace(run.end, Edit{0, "<!-- -->"});
      return;
    }
    const Neighbour& outside = run.opens ? left : right;
    const Neighbour& inside = run.opens ? right : left;
    const bool is_word = !outside.is_space() && !outside.is_punctuation();
    if (!is_word || (run.mark != '_' && !inside.may_be_punctuation())) return;
    if (is_in_tag(outside.begin)) {
      edits_.try_emplace(run.opens ? run.begin : run.end, Edit{0, "<!-- -->"});
      return;
    }
    edits_.try_emplace(outside.begin, Edit{outside.end - outside.begin, fmt::format("&#{};", outside.code)});
    escape_underscores(outside);
  }

  // Escapes "_" next to a letter that becomes a reference, so that it is no longer within a word.
  void escape_underscores(const Neighbour& letter) {
    const auto is_text = [&](size_t at) { return written_[at] == '_' && !is_in_tag(at); };
    if (letter.end < written_.size() && is_text(letter.end)) edits_.try_emplace(letter.end, Edit{0, "\\"});
    const size_t before = letter.begin - 1;
    if (letter.begin > 1 && is_text(before) && written_[before - 1] != '\\') edits_.try_emplace(before, Edit{0, "\\"});
  }

  bool is_in_tag(size_t at) const {
    const auto behind = std::ranges::upper_bound(tags_, at, {}, &WrittenTag::begin);
    return behind != tags_.begin() && std::prev(behind)->end > at;
  }

  // Two spaces or a backslash break a line only between two texts.
  void replace_breaks() {
    size_t line = 0;  // where the text behind the last break begins
    for (const WrittenTag& tag : kept_) {
      const std::string_view bytes = std::string_view(written_).substr(tag.begin, tag.end - tag.begin);
      const bool is_break = part_.tags[tag.tag].breaks_line && bytes.find('\n') != bytes.npos;
      if (!is_break) continue;
      const auto has_text = [&](size_t begin, size_t end) {
        return std::string_view(written_).substr(begin, end - begin).find_first_not_of(" \t") != std::string::npos;
      };
      if (has_text(line, tag.begin) && tag.end < written_.size())
        line = tag.end;
      else
        edits_[tag.begin] = {tag.end - tag.begin, "<br/>"};
    }
  }

  // "`a``b`" would be one mark and its end, so a space divides codes that touch, also those next to the part.
  void separate_code() {
    const std::string_view bytes = document_.bytes;
    size_t code_end = part_.begin > 0 && bytes[part_.begin - 1] == '`' ? 0 : std::string::npos;
    for (const WrittenTag& tag : kept_) {
      if (tag.begin == tag.end) continue;
      if (tag.begin == code_end && written_[tag.begin] == '`') edits_.try_emplace(tag.begin, Edit{0, " "});
      code_end = written_[tag.end - 1] == '`' ? tag.end : std::string::npos;
    }
    const bool is_before_code = part_.end < bytes.size() && bytes[part_.end] == '`';
    if (is_before_code && code_end == written_.size()) edits_.try_emplace(code_end, Edit{0, " "});
  }

  // "!" before "[" would make an image of a link.
  void escape_exclamation(const WrittenTag& tag) {
    const bool is_text = tag.begin > 0 && written_[tag.begin - 1] == '!' && !is_in_tag(tag.begin - 1);
    if (is_text && tag.begin < tag.end && written_[tag.begin] == '[') edits_.try_emplace(tag.begin - 1, Edit{0, "\\"});
  }

  // "(" behind "[a]" would be a destination, and ":" the beginning of a definition.
  void escape_after_bracket(const WrittenTag& tag) {
    if (tag.begin == tag.end || written_[tag.end - 1] != ']' || tag.end == written_.size()) return;
    const bool begins_line = tag.begin == 0 || written_[tag.begin - 1] == '\n';
    const char c = written_[tag.end];
    if ((c == '(' || (c == ':' && begins_line)) && !is_in_tag(tag.end)) edits_.try_emplace(tag.end, Edit{0, "\\"});
  }

  void apply() {
    std::string repaired;
    size_t done = 0;
    for (const auto& [at, edit] : edits_) {
      repaired.append(written_, done, at - done);
      repaired += edit.text;
      done = at + edit.size;
    }
    repaired.append(written_, done);
    written_ = std::move(repaired);
  }

  const SplitText& document_;
  const TextPart& part_;
  std::string& written_;
  const std::vector<WrittenTag> tags_;
  std::vector<WrittenTag> kept_ = {};
  std::map<size_t, Edit> edits_ = {};      // by their places
  std::map<size_t, size_t> dropped_ = {};  // where elements without text begin and end
};

void repair_markdown(const SplitText& document, const TextPart& part, std::span<const WrittenTag> tags,
                     std::string& written) {
  if (!tags.empty()) MarkdownRepairer(document, part, tags, written).repair();
}

}  // namespace

const TextSpelling kMarkdownBlockSpelling = {decode_markdown, append_markdown<MarkdownPlace::block>, repair_markdown};
const TextSpelling kMarkdownInlineSpelling = {decode_markdown, append_markdown<MarkdownPlace::within>, repair_markdown};
const TextSpelling kMarkdownHeadingSpelling = {decode_markdown, append_markdown<MarkdownPlace::heading>,
                                               repair_markdown};
const TextSpelling kMarkdownCellSpelling = {decode_markdown, append_markdown<MarkdownPlace::cell>, repair_markdown};

}  // namespace qkv
