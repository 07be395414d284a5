#include "documents/inline_run.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/to_size.h"

namespace qkv {
namespace {

using ItemKind = RunItem::Kind;
using TagKind = InlineTag::Kind;
constexpr size_t kNone = InlineTag::kNone;
constexpr UChar32 kByteOrderMark = 0xFEFF;

// A character of a document as text. Those of a CDATA section and of some references of HTML have the same bytes.
struct TextCharacter {
  std::string_view text;
  UChar32 code;
  size_t begin, end;  // bytes of the document

  bool is_space() const { return code == ' ' || (code >= '\t' && code <= '\r' && code != '\v'); }
  bool is_visible() const { return !u_isUWhiteSpace(code) && code != kByteOrderMark; }
};

template <class Visit>
void for_each_character(const SplitText& document, size_t text_begin, size_t text_end, Visit visit) {
  const std::string_view text = document.slice(0, text_end);
  std::string decoded;
  for (size_t at = text_begin; at < text_end;) {
    decoded.clear();
    const size_t reference = document.spelling->decode(text.substr(at), decoded);
    const std::string_view from = reference > 0 ? std::string_view(decoded) : text.substr(at);
    const size_t begin = at;
    at += reference;
    for (int64_t i = 0; std::cmp_less(i, from.size());) {
      const size_t first = to_size(i);
      UChar32 code;
      U8_NEXT_OR_FFFD(from.data(), i, static_cast<int64_t>(from.size()), code);
      const size_t size = to_size(i) - first;
      if (reference == 0) at += size;
      visit(TextCharacter{from.substr(first, size), code, begin, at});
      if (reference == 0) break;
    }
  }
}

// Returns for each item that opens or closes an element the item that closes or opens it, or kNone. Elements that
// were opened inside another one and not closed before it have no partner.
std::vector<size_t> find_partners(std::span<const RunItem> items) {
  std::vector<size_t> partners(items.size(), kNone), open;
  std::unordered_map<const std::string*, size_t> count;  // of open elements of each name
  for (size_t i = 0; i < items.size(); i++) {
    if (items[i].kind == ItemKind::open) {
      open.push_back(i);
      count[items[i].name]++;
    } else if (items[i].kind == ItemKind::close && count[items[i].name] > 0) {
      while (items[open.back()].name != items[i].name) {
        count[items[open.back()].name]--;
        open.pop_back();
      }
      partners[i] = open.back();
      partners[open.back()] = i;
      count[items[i].name]--;
      open.pop_back();
    }
  }
  return partners;
}

class PartBuilder {
 public:
  PartBuilder(SplitText& document, std::span<const RunItem> items, WhiteSpace white_space)
      : document_(document),
        items_(items),
        keeps_space_(white_space == WhiteSpace::keep),
        partners_(find_partners(items)),
        visible_before_(items.size() + 1),
        spaces_before_(items.size() + 1) {
    for (size_t i = 0; i < items.size(); i++) {
      visible_.push_back(items[i].kind == ItemKind::text
                             ? visible_text(document, items[i].begin, items[i].end)
                             : VisibleText{.has_space = items[i].kind == ItemKind::line_break});
      visible_before_[i + 1] = visible_before_[i] + (visible_[i].is_empty() ? 0 : 1);
      spaces_before_[i + 1] = spaces_before_[i] + (visible_[i].has_space ? 1 : 0);
      has_word_ |= visible_[i].has_word;
    }
  }

  void build() {
    if (!has_word_) return;
    trim();
    part_.begin = begin_ == first_ ? visible_[first_].begin : items_[begin_].begin;
    part_.end = end_ == last_ + 1 ? visible_[last_].end : items_[end_ - 1].end;
    for (size_t i = begin_; i < end_; i++) {
      if (items_[i].kind == ItemKind::text)
        add_text(i);
      else
        i = add_tag(i);
    }
    document_.parts.push_back(std::move(part_));
  }

 private:
  // Takes the run of an element that stays outside of the part.
  void enter(const RunItem& item) {
    if (item.kind == ItemKind::open && item.run != kNone) part_.run = item.run;
  }

  bool trims_front() {
    if (begin_ == first_) return false;
    const size_t partner = partners_[begin_];
    if (items_[begin_].kind == ItemKind::open && partner != kNone) {
      if (partner > first_) return false;
      begin_ = partner;  // an element without text
    }
    enter(items_[begin_]);
    begin_++;
    return true;
  }

  bool trims_back() {
    if (end_ == last_ + 1) return false;
    const size_t partner = partners_[end_ - 1];
    if (items_[end_ - 1].kind == ItemKind::close && partner != kNone) {
      if (partner < last_) return false;
      end_ = partner + 1;
    }
    end_--;
    return true;
  }

  // An element around the whole text.
  bool trims_both() {
    if (begin_ == first_ || partners_[begin_] != end_ - 1) return false;
    enter(items_[begin_]);
    begin_++;
    end_--;
    return true;
  }

  void trim() {
    first_ = std::ranges::find(visible_before_, 1u) - visible_before_.begin() - 1;
    last_ = std::ranges::find(visible_before_, visible_before_.back()) - visible_before_.begin() - 1;
    begin_ = 0, end_ = items_.size();
    while (trims_front() || trims_back() || trims_both()) continue;
  }

  void add_text(size_t i) {
    for_each_character(document_, items_[i].begin, items_[i].end, [&](const TextCharacter& c) {
      if (c.begin < part_.begin || c.end > part_.end) return;
      if (c.is_space())
        add_space(c.text);
      else
        add_character(c);
    });
  }

  void add_space(std::string_view space) {
    is_after_space_ = true;
    if (keeps_space_ && space != "\r") space_ += space;
    is_space_due_ = !part_.text.empty();
    if (is_after_single_ || is_after_closed_single_) part_.tags.back().space_after = true;
  }

  void add_character(const TextCharacter& c) {
    // "Use <code>x</code>, then" reads "Use, then".
    const bool follows_single = (is_after_single_ && !part_.tags.back().breaks_line) || is_after_closed_single_;
    const bool is_attached = follows_single && !is_after_space_ && u_ispunct(c.code);
    if (is_space_due_ && !is_attached) part_.text += space_.empty() ? " " : space_;
    part_.text += c.text;
    space_.clear();
    is_space_due_ = is_after_space_ = is_after_single_ = is_after_closed_single_ = false;
  }

  // Returns the last item that the tag takes: an element without text is one.
  size_t add_tag(size_t i) {
    const size_t partner = partners_[i];
    const bool is_element = items_[i].kind == ItemKind::open && partner != kNone;
    const bool is_empty = is_element && visible_before_[partner] == visible_before_[i];
    const size_t last = is_empty ? partner : i;
    InlineTag tag{.at = part_.text.size(), .begin = items_[i].begin, .end = items_[last].end, .run = items_[i].run};
    if (!is_empty) tag.written = items_[i].written;
    if (is_empty || items_[i].kind == ItemKind::single || items_[i].kind == ItemKind::line_break) {
      tag.space_before = is_after_space_;
      tag.breaks_line = spaces_before_[last + 1] > spaces_before_[i];
      is_space_due_ |= tag.breaks_line && !part_.text.empty();
      is_after_single_ = true;
      is_after_space_ = is_after_closed_single_ = false;
    } else {
      tag.kind = is_element || items_[i].kind == ItemKind::open ? TagKind::open : TagKind::close;
      is_after_closed_single_ =
          tag.kind == TagKind::close && !is_after_space_ && (is_after_single_ || is_after_closed_single_);
      is_after_single_ = false;
      if (tag.kind == TagKind::open) is_after_space_ = false;  // the space stays before it
      if (is_element) {
        tag_of_open_[i] = part_.tags.size();
      } else if (partner != kNone) {
        tag.partner = tag_of_open_[partner];
        part_.tags[tag.partner].partner = part_.tags.size();
      }
    }
    document_.written_bytes += tag.written.size();
    check_written_bytes(document_, document_.written_bytes);
    part_.tags.push_back(std::move(tag));
    return last;
  }

  SplitText& document_;
  const std::span<const RunItem> items_;
  const bool keeps_space_;
  const std::vector<size_t> partners_;
  std::vector<VisibleText> visible_;
  std::vector<size_t> visible_before_;  // items with visible text before each
  std::vector<size_t> spaces_before_;   // items with white space before each
  bool has_word_ = false;
  size_t first_ = 0, last_ = 0;  // items with visible text
  size_t begin_ = 0, end_ = 0;   // items of the part
  TextPart part_ = {};
  std::unordered_map<size_t, size_t> tag_of_open_;  // of items
  std::string space_;                               // before the next character, if it is kept
  bool is_space_due_ = false;                       // before the next character
  bool is_after_space_ = false;                     // since the last character or single tag
  bool is_after_single_ = false;                    // the last tag is single, without a character since
  bool is_after_closed_single_ = false;             // an end tag follows it directly
};

}  // namespace

VisibleText visible_text(const SplitText& document, size_t begin, size_t end) {
  VisibleText visible;
  for_each_character(document, begin, end, [&](const TextCharacter& c) {
    visible.has_space |= u_isUWhiteSpace(c.code) != 0;
    if (!c.is_visible()) return;
    if (visible.is_empty()) visible.begin = c.begin;
    visible.end = c.end;
    visible.has_word |= u_isalnum(c.code) != 0;
    visible.has_letter |= u_isalpha(c.code) != 0;
  });
  return visible;
}

void add_part(SplitText& document, std::span<const RunItem> items, WhiteSpace white_space) {
  if (!items.empty()) PartBuilder(document, items, white_space).build();
}

bool ends_like_sentence(std::string_view text) {
  constexpr std::u32string_view kClosing = U"\"'”’»)]」』）》", kEnds = U".!?…:。！？：";
  const auto holds = [](std::u32string_view set, UChar32 c) { return set.find(static_cast<char32_t>(c)) != set.npos; };
  text = text.substr(text.size() - std::min<size_t>(text.size(), 256));
  for (auto end = static_cast<int32_t>(text.size()); end > 0;) {
    UChar32 c;
    U8_PREV_OR_FFFD(text.data(), 0, end, c);
    if (!u_isUWhiteSpace(c) && !holds(kClosing, c)) return holds(kEnds, c);
  }
  return false;
}

}  // namespace qkv
