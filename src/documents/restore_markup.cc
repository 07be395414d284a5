#include "documents/restore_markup.h"

#include <utility>
#include <vector>

#include "documents/aligned_units.h"
#include "documents/tag_layout.h"

namespace qkv {
namespace {

class TagWriter {
 public:
  TagWriter(const SplitText& document, const TextPart& part, const std::string& text, const AlignedUnits& aligned)
      : document_(document),
        part_(part),
        text_(text),
        units_(aligned.units),
        spelling_(part.spelling ? *part.spelling : *document.spelling) {}

  std::string write(const std::vector<PlacedTag>& placed) {
    size_t next = 0;
    for (size_t u = 0; u <= units_.size(); u++) {
      const size_t begin = u == 0 ? 0 : units_[u - 1].end;
      between_ = std::string_view(text_).substr(begin, (u == units_.size() ? text_.size() : units_[u].begin) - begin);
      is_first_ = u == 0;
      is_last_ = u == units_.size();
      is_between_written_ = false;
      for (; next < placed.size() && placed[next].unit == u; next++) add_tag(part_.tags[placed[next].tag]);
      write_between();
      if (u < units_.size()) add_text(std::string_view(text_).substr(units_[u].begin, units_[u].end - units_[u].begin));
    }
    return std::move(written_);
  }

 private:
  void add_text(std::string_view text) {
    spelling_.append(text, written_);
  }

  void write_between() {
    if (!is_between_written_) add_text(between_);
    is_between_written_ = true;
  }

  // White space stays outside of elements, and on the side of a single tag where the source has it.
  void add_tag(const InlineTag& tag) {
    const bool is_single = tag.kind == InlineTag::Kind::single;
    const bool has_space = tag.space_before || tag.space_after;
    if (is_single && tag.breaks_line && !has_space && between_ == " ") is_between_written_ = true;
    if (tag.kind == InlineTag::Kind::open || (is_single && (tag.space_before || !has_space)))
      write_space(is_single && tag.space_before && !is_first_);
    written_ += document_.bytes_of(tag);
    if (is_single && tag.space_after) write_space(!is_last_);
  }

  // needs_one: adds a space where the translation has none, such as between a word and a mark.
  void write_space(bool needs_one) {
    const size_t size = written_.size();
    write_between();
    if (needs_one && written_.size() == size && !written_.ends_with(' ')) written_ += ' ';
  }

  const SplitText& document_;
  const TextPart& part_;
  const std::string& text_;
  const std::vector<TargetUnit>& units_;
  const TextSpelling& spelling_;
  std::string_view between_ = {};  // text between two units
  bool is_between_written_ = false;
  bool is_first_ = false, is_last_ = false;  // no unit is before or after the tags
  std::string written_ = {};
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

std::string write_translation(const SplitText& document, const TextPart& part,
                              const std::vector<std::string>& source_tokens, const Hypothesis& chosen) {
  if (chosen.text == part.text) return std::string(document.source_of(part));
  const std::string text = part.lines > 1 ? break_lines(chosen.text, part.lines) : chosen.text;
  AlignedUnits aligned;
  std::vector<PlacedTag> placed;
  if (!part.tags.empty()) {
    aligned = align_units(part.text, source_tokens, chosen);
    placed = place_tags(part, aligned);
  }
  const std::string written = TagWriter(document, part, text, aligned).write(placed);
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
                           size_t hypothesis) {
  const Hypothesis& chosen = translation.hypotheses.at(hypothesis);
  return part.before + write_translation(document, part, translation.source_tokens, chosen) + part.after;
}

}  // namespace qkv
