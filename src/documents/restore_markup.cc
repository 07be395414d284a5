#include "documents/restore_markup.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "documents/strings/string_part.h"
#include "documents/tag_layout.h"
#include "text/alignment/aligned_units.h"

namespace qkv {
namespace {

// Returns bytes of a part, with the parts within them replaced.
std::string bytes_within(const SplitText& document, const TextPart& part, ByteRange range,
                         std::span<const std::string> replacements) {
  if (replacements.empty()) return std::string(document.slice(range.begin, range.end));
  const auto behind = std::ranges::upper_bound(document.parts, part.begin, {}, &TextPart::begin);
  return join_range(document, range, static_cast<size_t>(behind - document.parts.begin()), replacements);
}

bool is_white_space(char c) { return c == ' ' || c == '\n' || c == '\t'; }

class TagWriter {
 public:
  TagWriter(const SplitText& document, const TextPart& part, const std::string& text, const AlignedUnits& aligned,
            std::span<const std::string> replacements)
      : document_(document),
        part_(part),
        replacements_(replacements),
        text_(text),
        units_(aligned.units),
        spelling_(part.spelling ? *part.spelling : *document.spelling),
        runs_{part.run} {}

  std::string write(const std::vector<PlacedTag>& placed) {
    size_t next = 0;
    for (size_t u = 0; u <= units_.size(); u++) {
      const size_t begin = u == 0 ? 0 : units_[u - 1].end;
      between_ = std::string_view(text_).substr(begin, (u == units_.size() ? text_.size() : units_[u].begin) - begin);
      is_first_ = u == 0, is_last_ = u == units_.size();
      is_between_written_ = false;
      for (; next < placed.size() && placed[next].unit == u; next++) add_tag(placed[next].tag);
      write_between();
      if (u < units_.size()) add_text(std::string_view(text_).substr(units_[u].begin, units_[u].end - units_[u].begin));
    }
    flush();
    close_run();
    if (spelling_.repair) spelling_.repair(document_, part_, tags_, written_);
    return std::move(written_);
  }

 private:
  void add_text(std::string_view text) { pending_ += text; }

  // Writes the text since the last tag at once, as the spelling of a character may depend on the next ones.
  void flush() {
    if (!pending_.empty() && !is_in_run_ && runs_.back() != InlineTag::kNone) {
      written_ += document_.runs[runs_.back()].opening;
      is_in_run_ = true;
    }
    spelling_.append(pending_, written_);
    pending_.clear();
  }

  void close_run() {
    if (is_in_run_) written_ += document_.runs[runs_.back()].closing;
    is_in_run_ = false;
  }

  // Writes a tag between the runs of the text before and behind it.
  void write_tag(const InlineTag& tag, size_t place) {
    flush();
    close_run();
    const size_t begin = written_.size();
    if (tag.kind == InlineTag::Kind::single && tag.written.empty())
      written_ += bytes_within(document_, part_, {tag.begin, tag.end}, replacements_);
    else
      written_ += document_.bytes_of(tag);
    tags_.push_back({place, begin, written_.size()});
    if (tag.kind == InlineTag::Kind::open) runs_.push_back(tag.run == InlineTag::kNone ? runs_.back() : tag.run);
    if (tag.kind == InlineTag::Kind::close && runs_.size() > 1) runs_.pop_back();
  }

  void write_between() {
    if (!is_between_written_) add_text(between_);
    is_between_written_ = true;
  }

  // White space stays outside of elements, and on the side of a single tag where the source has it, or towards the text
  // if the tag stands before it.
  void add_tag(size_t place) {
    const InlineTag& tag = part_.tags[place];
    const bool is_single = tag.kind == InlineTag::Kind::single;
    const bool has_space = tag.space_before || tag.space_after;
    if (is_single && tag.breaks_line && !has_space && between_ == " ") is_between_written_ = true;
    const bool is_in_brackets = is_single && follows_bracket(tag);
    const bool needs_space = tag.space_before || (is_in_brackets && ends_with_word());
    if (tag.kind == InlineTag::Kind::open || (is_single && (tag.space_before || !has_space)))
      write_space(is_single && needs_space && !is_first_);
    const bool ends_with_space = tag.kind == InlineTag::Kind::close && pending_ == " ";  // behind a single tag
    if (ends_with_space) pending_.clear();
    write_tag(tag, place);
    if (ends_with_space) add_text(" ");
    if (tag.space_after || (is_single && is_first_ && tag.space_before)) write_space(!is_last_);
    // "Use <code>x</code>, then" without the mark.
    const bool is_apart = is_single && (tag.space_before || is_in_brackets) && !tag.space_after && !is_first_;
    if (is_apart && !between_.empty() && precedes_mark(tag)) add_text(" ");
  }

  bool precedes_mark(const InlineTag& tag) const {
    return tag.at < part_.text.size() && !is_white_space(part_.text[tag.at]);
  }

  // "(<code>x</code>)": where the translation lacks the bracket, the tag does not touch a word.
  bool follows_bracket(const InlineTag& tag) const {
    if (tag.at == 0 || tag.space_before) return false;
    return (U_GET_GC_MASK(last_code_point(std::string_view(part_.text).substr(0, tag.at))) &
            (U_GC_PS_MASK | U_GC_PI_MASK)) != 0;
  }

  bool ends_with_word() const { return !pending_.empty() && u_isalnum(last_code_point(pending_)) != 0; }

  // needs_one: adds a space where the translation has none, such as between a word and a mark.
  void write_space(bool needs_one) {
    const size_t size = pending_.size();
    write_between();
    const bool has_space = (pending_.empty() ? written_ : pending_).ends_with(' ');
    if (needs_one && pending_.size() == size && !has_space) add_text(" ");
  }

  const SplitText& document_;
  const TextPart& part_;
  const std::span<const std::string> replacements_;  // of the document's parts
  const std::string& text_;
  const std::vector<TargetUnit>& units_;
  const TextSpelling& spelling_;
  std::string_view between_ = {};  // text between two units
  bool is_between_written_ = false, is_first_ = false, is_last_ = false;
  std::string pending_ = {};  // text that is not yet written
  std::string written_ = {};
  std::vector<WrittenTag> tags_ = {};
  std::vector<size_t> runs_;  // of the part and the elements that are open
  bool is_in_run_ = false;    // the last one is open
};

std::string with_line_ends(std::string_view text, std::string_view line_end) {
  std::string with;
  for (const char c : text) {
    if (c == '\n')
      with += line_end;
    else
      with += c;
  }
  return with;
}

std::string write_translation(const SplitText& document, const TextPart& part, const Translation& translation,
                              const Hypothesis& chosen, std::span<const std::string> replacements) {
  if (chosen.text == part.text)
    return bytes_within(document, part, part.source.value_or(ByteRange{part.begin, part.end}), replacements);
  const std::string text = part.lines > 1 ? break_lines(chosen.text, part.lines) : chosen.text;
  AlignedUnits aligned;
  std::vector<PlacedTag> placed;
  if (!part.tags.empty()) {
    const auto places = places_in_source(translation.source_prefix, part.text, translation.source_tokens);
    aligned = align_units(part.text, places, chosen);
    placed = place_tags(part, aligned);
  }
  const std::string written = TagWriter(document, part, text, aligned, replacements).write(placed);
  return part.opening + (part.lines > 0 ? with_line_ends(written, part.line_end) : written) + part.closing;
}

}  // namespace

std::string break_lines(std::string text, size_t count) {
  const std::string_view spaced = text;
  size_t done = 0;  // bytes in lines that have ended
  for (; count > 1; count--) {
    const size_t size = (text.size() - done) / count;
    const size_t before = spaced.substr(done, size + 1).rfind(' ');  // in this line
    const bool has_before = before != spaced.npos && before > 0;
    const std::string_view behind = spaced.substr(done + size, has_before ? size - before : spaced.npos);
    const size_t distance = behind.find(' ');
    if (!has_before && distance == spaced.npos) break;
    const size_t chosen = done + (distance == spaced.npos ? before : size + distance);
    text[chosen] = '\n';
    done = chosen + 1;
  }
  return text;
}

std::string restore_markup(const SplitText& document, const TextPart& part, const Translation& translation,
                           size_t hypothesis, std::span<const std::string> replacements) {
  const Hypothesis& chosen = translation.hypotheses.at(hypothesis);
  return part.before + write_translation(document, part, translation, chosen, replacements) + part.after;
}

}  // namespace qkv
