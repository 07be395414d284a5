#include "documents/restore_markup.h"

#include <utility>
#include <vector>

#include "documents/aligned_units.h"
#include "documents/html_tokens.h"
#include "documents/subtitles.h"
#include "documents/tag_layout.h"

namespace qkv {
namespace {

class TagWriter {
 public:
  TagWriter(const SplitText& document, const TextPart& part, const std::string& text, const AlignedUnits& aligned)
      : document_(document), part_(part), text_(text), units_(aligned.units) {}

  std::string write(const std::vector<PlacedTag>& placed) {
    size_t next = 0;
    for (size_t u = 0; u <= units_.size(); u++) {
      const size_t begin = u == 0 ? 0 : units_[u - 1].end;
      between_ = std::string_view(text_).substr(begin, (u == units_.size() ? text_.size() : units_[u].begin) - begin);
      is_edge_ = u == 0 || u == units_.size();
      is_between_written_ = false;
      for (; next < placed.size() && placed[next].unit == u; next++) add_tag(part_.tags[placed[next].tag]);
      write_between();
      if (u < units_.size()) add_text(std::string_view(text_).substr(units_[u].begin, units_[u].end - units_[u].begin));
    }
    return std::move(written_);
  }

 private:
  void add_text(std::string_view text) {
    if (document_.format == TextFormat::html)
      append_as_html(text, written_);
    else
      written_ += text;
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
      write_space(is_single && tag.space_before);
    written_ += document_.bytes_of(tag);
    if (is_single && tag.space_after) write_space(true);
  }

  // needs_one: adds a space where the translation has none, such as between a word and a mark.
  void write_space(bool needs_one) {
    const size_t size = written_.size();
    write_between();
    if (needs_one && !is_edge_ && written_.size() == size && !written_.ends_with(' ')) written_ += ' ';
  }

  const SplitText& document_;
  const TextPart& part_;
  const std::string& text_;
  const std::vector<TargetUnit>& units_;
  std::string_view between_ = {};  // text between two units
  bool is_between_written_ = false, is_edge_ = false;
  std::string written_ = {};
};

}  // namespace

std::string restore_markup(const SplitText& document, const TextPart& part, const Translation& translation,
                           size_t hypothesis) {
  const Hypothesis& chosen = translation.hypotheses.at(hypothesis);
  if (chosen.text == part.text) return std::string(document.bytes_of(part));
  if (document.format == TextFormat::lines) return chosen.text;
  const AlignedUnits aligned = align_units(part.text, translation.source_tokens, chosen);
  const std::vector<PlacedTag> placed = place_tags(part, aligned);
  if (document.format == TextFormat::html) return TagWriter(document, part, chosen.text, aligned).write(placed);
  const SubtitleLines lines = subtitle_lines(document.bytes_of(part));
  return with_line_ends(TagWriter(document, part, break_lines(chosen.text, lines.count), aligned).write(placed), lines);
}

}  // namespace qkv
