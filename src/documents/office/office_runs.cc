#include "documents/office/office_runs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "documents/inline_run.h"
#include "documents/office/office_fields.h"
#include "documents/office/office_items.h"

namespace qkv {
namespace {

using ItemKind = RunItem::Kind;
using TokenKind = XmlToken::Kind;
constexpr size_t kNoPlace = OfficeItem::kNone;
constexpr size_t kLongestRunMarkup = 4096;  // bytes; written for each text and each tag of a translation
constexpr std::string_view kOfficeBlanks = " \t\r\n";
const std::string kLinkElement = "field";

// Where an item begins and ends, and the runs that are cut there.
struct ItemExtent {
  size_t begin, end, begin_cut = kNoPlace, end_cut = kNoPlace;
};

class OfficeSplitter {
 public:
  OfficeSplitter(SplitText& document, const OfficeMarkup& markup)
      : document_(document), markup_(markup), xml_(read_xml(document.bytes)), tokens_(xml_.tokens) {
    roles_.reserve(tokens_.size());
    paragraphs_before_.reserve(tokens_.size() + 1);
    paragraphs_before_.push_back(0);
    for (const XmlToken& token : tokens_) {
      roles_.push_back(token.kind == TokenKind::start ? markup.role(token) : OfficeRole::other);
      paragraphs_before_.push_back(paragraphs_before_.back() + (roles_.back() == OfficeRole::paragraph ? 1 : 0));
    }
    fields_ = find_office_fields(document.bytes, tokens_, roles_);
  }

  void split() { split_paragraphs(0, tokens_.size()); }

 private:
  struct Run {
    std::string_view opening, closing;  // bytes of the run around its content
    std::string key;                    // the same for runs with the same properties
  };

  // The next token behind the element or other markup that begins with this one.
  size_t behind(size_t i) const { return tokens_[i].kind == TokenKind::start ? tokens_[i].partner + 1 : i + 1; }
  size_t end_of(size_t i) const { return tokens_[behind(i) - 1].end; }
  std::string_view bytes_of(size_t i) const { return document_.slice(tokens_[i].begin, end_of(i)); }
  bool holds_paragraphs(size_t i) const { return paragraphs_before_[i] != paragraphs_before_[behind(i)]; }

  bool is_blank(size_t i) const {
    return tokens_[i].kind == TokenKind::text && bytes_of(i).find_first_not_of(kOfficeBlanks) == std::string_view::npos;
  }
  bool has_effect(size_t i) const { return roles_[i] != OfficeRole::unseen && !is_blank(i); }

  // Elements are nested at most 512 deep, so this is limited.
  void split_paragraphs(size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
      if (roles_[i] != OfficeRole::paragraph) continue;
      flush();
      add_content(i + 1, tokens_[i].partner);
      flush();
      i = tokens_[i].partner;
    }
  }

  // Adds the children of a paragraph or a container.
  void add_content(size_t begin, size_t end) {
    for (size_t i = begin; i < end; i = behind(i)) {
      if (behind(i) <= done_ || !has_effect(i)) continue;
      if (roles_[i] == OfficeRole::run)
        add_run(i);
      else if (roles_[i] == OfficeRole::container && behind(i) > i + 2)
        add_container(i);
      else if (roles_[i] == OfficeRole::text)
        add_bare_text(i);
      else if (roles_[i] == OfficeRole::line_break)
        add_line_break({tokens_[i].begin, end_of(i)});
      else if (roles_[i] == OfficeRole::part_end)
        flush();
      else
        add_other(i, {tokens_[i].begin, end_of(i)});
    }
  }

  void add_container(size_t i) {
    size_t begin = i + 1, end = tokens_[i].partner;
    while (begin < end && (roles_[begin] == OfficeRole::properties || is_blank(begin))) begin = behind(begin);
    if (begin < end && roles_[begin] == OfficeRole::content) end = tokens_[begin].partner, begin++;
    const std::string* name = tokens_[i].name;
    const size_t opening_end = tokens_[begin - 1].end;
    const size_t closing = std::max<size_t>(opening_end, tokens_[end].begin);
    items_.push_back({.kind = ItemKind::open, .begin = tokens_[i].begin, .end = opening_end, .name = name});
    add_content(begin, end);
    items_.push_back({.kind = ItemKind::close, .begin = closing, .end = end_of(i), .name = name});
  }

  // Adds an element that stays. Paragraphs in it are parts of their own.
  void add_other(size_t i, const ItemExtent& extent) {
    if (!holds_paragraphs(i)) return add_item(ItemKind::single, extent);
    flush();
    split_paragraphs(i, behind(i));
  }

  void add_item(ItemKind kind, const ItemExtent& extent, const std::string* name = nullptr) {
    items_.push_back({.kind = kind,
                      .begin = extent.begin,
                      .end = extent.end,
                      .begin_cut = extent.begin_cut,
                      .end_cut = extent.end_cut,
                      .name = name});
  }

  void add_line_break(const ItemExtent& extent) {
    const bool ends_text = !items_.empty() && items_.back().kind == ItemKind::text &&
                           ends_like_sentence(document_.slice(items_.back().text.begin, items_.back().text.end));
    if (ends_text || (!items_.empty() && items_.back().kind == ItemKind::line_break)) flush();
    add_item(ItemKind::line_break, extent);
  }

  void add_run(size_t i) {
    std::vector<size_t> children;
    const size_t properties = properties_of(i);
    for (size_t child = properties == kNoPlace ? i + 1 : behind(properties); child < tokens_[i].partner;
         child = behind(child))
      if (has_effect(child)) children.push_back(child);
    if (children.empty()) return;
    const Run run = read_run(i, properties);
    if (run.opening.size() > kLongestRunMarkup) return add_other(i, {tokens_[i].begin, end_of(i)});
    const size_t cut = intern(run.closing, run, run.opening);
    for (const size_t child : children) {
      const bool is_first = child == children.front(), is_last = child == children.back();
      ItemExtent extent = {tokens_[is_first ? i : child].begin, end_of(is_last ? i : child)};
      if (!is_first) extent.begin_cut = cut;
      if (!is_last) extent.end_cut = cut;
      if (behind(child) > done_) add_run_child(child, run, extent);
    }
  }

  void add_run_child(size_t child, const Run& run, const ItemExtent& extent) {
    switch (roles_[child]) {
      case OfficeRole::text:
        return add_run_text(child, run, extent);
      case OfficeRole::hyphen:
        return add_hyphen(child, run, extent);
      case OfficeRole::line_break:
        return add_line_break(extent);
      case OfficeRole::part_end:
        return flush();
      case OfficeRole::field:
        return add_field(child, extent);
      default:
        return add_other(child, extent);
    }
  }

  size_t properties_of(size_t run) const {
    size_t child = run + 1;
    while (child < tokens_[run].partner && !has_effect(child)) child = behind(child);
    return roles_[child] == OfficeRole::run_properties ? child : kNoPlace;
  }

  Run read_run(size_t i, size_t properties) const {
    Run run;
    const size_t begin = tokens_[i].begin;
    run.opening = document_.slice(begin, properties == kNoPlace ? tokens_[i].end : end_of(properties));
    run.closing = document_.slice(tokens_[tokens_[i].partner].begin, end_of(i));
    if (properties == kNoPlace || run.opening.size() > kLongestRunMarkup) return run;
    for (const auto& [name, value] : tokens_[properties].attributes())
      if (std::ranges::find(markup_.unseen_attributes, *name) == markup_.unseen_attributes.end())
        run.key += *name + '=' + value + '\n';
    for (size_t child = properties + 1; child < tokens_[properties].partner; child = behind(child))
      if (has_effect(child)) run.key += bytes_of(child);
    return run;
  }

  // Returns the place in SplitText::runs of this markup, which is the same for runs with the same properties.
  size_t intern(std::string_view closing, const Run& run, std::string_view opening) {
    const auto [found, is_new] = places_.try_emplace(std::string(closing) + run.key, document_.runs.size());
    if (is_new) document_.runs.push_back({std::string(opening), std::string(closing)});
    return found->second;
  }

  void add_run_text(size_t i, const Run& run, const ItemExtent& extent) {
    if (behind(i) == i + 2) return;  // no text
    const bool has_one_text = behind(i) == i + 3 && tokens_[i + 1].kind == TokenKind::text;
    std::string tag(document_.slice(tokens_[i].begin, tokens_[i].end));
    if (!has_one_text || tag.size() > kLongestRunMarkup) return add_other(i, extent);
    const std::string* space = tokens_[i].attribute("http://www.w3.org/XML/1998/namespace space");
    if (markup_.marks_space && !space) tag.insert(tag.find_first_of(" \t\r\n>"), " xml:space=\"preserve\"");
    std::string closing(document_.slice(tokens_[i + 2].begin, tokens_[i + 2].end));
    closing += run.closing;
    const size_t place = intern(closing, run, std::string(run.opening) + tag);
    ByteRange text = {tokens_[i + 1].begin, tokens_[i + 1].end};
    if (markup_.marks_space && !(space && *space == "preserve")) text = without_blanks(text);
    add_text(text, place, extent);
  }

  // Adds an element as text of its run: <w:t> for <w:noBreakHyphen/>.
  void add_hyphen(size_t i, const Run& run, const ItemExtent& extent) {
    const std::string_view tag = document_.slice(tokens_[i].begin, tokens_[i].end);
    if (!tag.ends_with("/>") || !tokens_[i].attributes().empty()) return add_other(i, extent);
    const size_t name_end = tag.find_first_of(" \t\r\n/");
    const std::string name = std::string(tag.substr(1, name_end - 1 - tokens_[i].local().size())) + "t";
    const std::string closing = "</" + name + ">" + std::string(run.closing);
    const std::string opening = std::string(run.opening) + "<" + name + " xml:space=\"preserve\">";
    add_text_item({tokens_[i].begin, tokens_[i].end}, intern(closing, run, opening), extent);
  }

  // Adds text that stands in no run.
  void add_bare_text(size_t i) {
    flush();
    if (behind(i) == i + 3 && tokens_[i + 1].kind == TokenKind::text)
      add_text({tokens_[i + 1].begin, tokens_[i + 1].end}, kNoPlace, {tokens_[i + 1].begin, tokens_[i + 1].end});
    flush();
  }

  ByteRange without_blanks(const ByteRange& text) const {
    const std::string_view bytes = document_.slice(text.begin, text.end);
    const size_t begin = bytes.find_first_not_of(kOfficeBlanks);
    if (begin == bytes.npos) return {text.begin, text.begin};
    return {text.begin + begin, text.begin + bytes.find_last_not_of(kOfficeBlanks) + 1};
  }

  // Adds the lines of a text, and ends the part at tabs.
  void add_text(const ByteRange& text, size_t run, ItemExtent extent) {
    const size_t end = extent.end, end_cut = extent.end_cut;
    size_t begin = text.begin;
    for (size_t at = begin; at < text.end;) {
      const size_t size = break_size(document_.slice(at, text.end));
      if (size == 0) {
        const size_t next = document_.slice(at + 1, text.end).find_first_of("\t\n&");
        at = next == std::string_view::npos ? text.end : at + 1 + next;
        continue;
      }
      extent.end = at, extent.end_cut = run;
      add_text_item({begin, at}, run, extent);
      if (document_.bytes[at] == '\t')
        flush();
      else
        add_line_break({at, at + size, run, run});
      begin = at += size;
      extent.begin = begin, extent.begin_cut = run;
    }
    extent.end = end, extent.end_cut = end_cut;
    add_text_item({begin, text.end}, run, extent);
  }

  // Returns the length of the tab or line break that the text begins with; 0 if there is none.
  size_t break_size(std::string_view text) const {
    if (text[0] == '\t') return 1;
    if (!markup_.has_lines) return 0;
    return text[0] == '\n' ? 1 : text.starts_with("&#10;") ? 5 : 0;
  }

  void add_text_item(const ByteRange& text, size_t run, const ItemExtent& extent) {
    items_.push_back({.begin = extent.begin,
                      .end = extent.end,
                      .begin_cut = extent.begin_cut,
                      .end_cut = extent.end_cut,
                      .text = text,
                      .run = run});
  }

  void add_field(size_t i, ItemExtent extent) {
    const auto found = fields_.find(i);
    if (found == fields_.end()) return flush();
    const OfficeField& field = found->second;
    if (field.kind == OfficeField::Kind::link_close) return add_item(ItemKind::close, extent, &kLinkElement);
    const Run last_run = read_run(field.last_run, properties_of(field.last_run));
    if (last_run.opening.size() > kLongestRunMarkup) return flush();
    size_t next = field.last + 1;
    while (next < tokens_[field.last_run].partner && !has_effect(next)) next = behind(next);
    const bool ends_run = next == tokens_[field.last_run].partner;
    extent.end = tokens_[ends_run ? next : field.last].end;
    extent.end_cut = ends_run ? kNoPlace : intern(last_run.closing, last_run, last_run.opening);
    add_item(field.kind == OfficeField::Kind::whole ? ItemKind::single : ItemKind::open, extent, &kLinkElement);
    done_ = field.last + 1;
  }

  void flush() {
    if (!items_.empty()) add_office_part(document_, items_);
    items_.clear();
  }

  SplitText& document_;
  const OfficeMarkup& markup_;
  const XmlTokens xml_;
  const std::vector<XmlToken>& tokens_;
  std::vector<OfficeRole> roles_ = {};            // of each token
  std::vector<uint32_t> paragraphs_before_ = {};  // starts before each token
  std::unordered_map<size_t, OfficeField> fields_ = {};
  std::unordered_map<std::string, size_t> places_ = {};
  std::vector<OfficeItem> items_ = {};  // since the last end of a part
  size_t done_ = 0;                     // tokens before are in items
};

OfficeRole drawing_role(const XmlToken& tag) {
  if (!is_in_office_space(tag, "drawingml")) return OfficeRole::other;
  const std::string_view name = tag.local();
  if (name == "p") return OfficeRole::paragraph;
  if (name == "r") return OfficeRole::run;
  if (name == "rPr") return OfficeRole::run_properties;
  if (name == "t") return OfficeRole::text;
  if (name == "br") return OfficeRole::line_break;
  return OfficeRole::other;
}

}  // namespace

bool is_in_office_space(const XmlToken& tag, std::string_view space) {
  const std::string_view tag_space = tag.space();
  const auto is = [&](std::string_view before, std::string_view behind) {
    return tag_space.size() == before.size() + space.size() + behind.size() && tag_space.starts_with(before) &&
           tag_space.substr(before.size()).starts_with(space) && tag_space.ends_with(behind);
  };
  return is("http://schemas.openxmlformats.org/", "/2006/main") || is("http://purl.oclc.org/ooxml/", "/main");
}

std::string_view office_attribute(const XmlToken& tag, std::string_view local_name) {
  for (const auto& [name, value] : tag.attributes())
    if (name->ends_with(local_name) &&
        (name->size() == local_name.size() || (*name)[name->size() - local_name.size() - 1] == ' '))
      return value;
  return "";
}

SplitText split_office_text(std::string xml, const OfficeMarkup& markup) {
  SplitText document{.bytes = std::move(xml), .spelling = markup.spelling};
  OfficeSplitter(document, markup).split();
  return document;
}

SplitText split_drawing_text(std::string xml) {
  // Marks of the spelling checker, and the language of the source.
  static constexpr std::string_view kUnseen[] = {"lang", "altLang", "dirty", "err", "noProof", "smtClean"};
  static const OfficeMarkup markup = {.role = drawing_role, .unseen_attributes = kUnseen};
  return split_office_text(std::move(xml), markup);
}

bool is_numbered_member(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem) || !name.ends_with(".xml") || name.size() < stem.size() + 4) return false;
  const std::string_view number = name.substr(stem.size(), name.size() - stem.size() - 4);
  return number.find_first_not_of("0123456789") == number.npos;
}

}  // namespace qkv
