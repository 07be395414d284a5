#include "documents/bilingual/bilingual_xml.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/fail.h"
#include "documents/languages.h"

namespace qkv {
namespace {

constexpr std::string_view kXmlBlank = " \t\r\n";
constexpr size_t kNoToken = XmlToken::kNone;

bool is_blank_text(std::string_view text) { return text.find_first_not_of(kXmlBlank) == text.npos; }

// The codes that begin and end a range. They are a pair if there is one of each, in this order.
struct CodePair {
  size_t begin = kNoToken, end = kNoToken;  // tokens
  size_t begin_parent = 0, end_parent = 0;  // elements that they stand in
  bool is_kept = false;
  bool is_ambiguous = false;

  bool is_pair() const { return !is_ambiguous && begin != kNoToken && end != kNoToken && begin < end; }
};

// Makes the items of a run from the content of an element.
class RunMaker {
 public:
  RunMaker(const BilingualXml& file, const InlineMarkupRule& rule) : file_(file), rule_(rule) {}

  std::vector<RunItem> items(size_t element) {
    find_pairs(element);
    for (size_t i = element + 1; i < file_.token(element).partner; i++) {
      const XmlToken& token = file_.token(i);
      if (token.kind == XmlToken::Kind::start)
        i = add_element(i);
      else if (token.kind == XmlToken::Kind::end)
        items_.push_back({RunItem::Kind::close, token.begin, token.end, token.name});
      else
        items_.push_back(
            {token.kind == XmlToken::Kind::text ? RunItem::Kind::text : RunItem::Kind::single, token.begin, token.end});
    }
    return std::move(items_);
  }

  bool keeps_order() const { return keeps_order_; }

 private:
  void find_pairs(size_t element) {
    std::vector<size_t> open = {element};
    for (size_t i = element + 1; i < file_.token(element).partner; i++) {
      const XmlToken& token = file_.token(i);
      if (token.kind == XmlToken::Kind::end) open.pop_back();
      if (token.kind != XmlToken::Kind::start) continue;
      const InlineMarkup markup = rule_(token);
      keeps_order_ |= markup.keeps_order;
      if (markup.kind == InlineMarkup::Kind::element) {
        open.push_back(i);
        continue;
      }
      if (markup.kind != InlineMarkup::Kind::code) add_to_pair(markup, i, open.back());
      i = token.partner;
    }
  }

  void add_to_pair(const InlineMarkup& markup, size_t token, size_t parent) {
    CodePair& pair = pairs_[markup.pair];
    const bool is_begin = markup.kind == InlineMarkup::Kind::begin;
    size_t& place = is_begin ? pair.begin : pair.end;
    pair.is_ambiguous |= place != kNoToken;
    place = token;
    (is_begin ? pair.begin_parent : pair.end_parent) = parent;
    pair.is_kept |= markup.is_kept;
  }

  // Returns the last token of what is added: the start tag of an element, or all of a code.
  size_t add_element(size_t i) {
    const XmlToken& token = file_.token(i);
    const InlineMarkup markup = rule_(token);
    if (markup.kind == InlineMarkup::Kind::element) {
      items_.push_back({RunItem::Kind::open, token.begin, token.end, token.name});
      return i;
    }
    RunItem item{RunItem::Kind::single, token.begin, file_.whole(i).end};
    size_t last = token.partner;
    if (const auto found = pairs_.find(markup.pair);
        markup.kind != InlineMarkup::Kind::code && found->second.is_pair()) {
      const CodePair& pair = found->second;
      if (pair.is_kept && pair.begin_parent == pair.end_parent) {
        item.end = file_.whole(pair.end).end;
        last = file_.token(pair.end).partner;
      } else {
        item.kind = i == pair.begin ? RunItem::Kind::open : RunItem::Kind::close;
        item.name = &found->first;
      }
    }
    items_.push_back(item);
    return last;
  }

  const BilingualXml& file_;
  const InlineMarkupRule& rule_;
  std::unordered_map<std::string, CodePair> pairs_;
  std::vector<RunItem> items_;
  bool keeps_order_ = false;
};

}  // namespace

const std::string& checked_target_language(const std::string& tag) {
  if (!language_code(tag)) fail("target_language \"{}\": must be a language tag such as de or pt-BR", tag);
  return tag;
}

BilingualXml::BilingualXml(std::string text, std::string_view root_name) {
  document.bytes = std::move(text);
  document.spelling = &kXmlSpelling;
  xml = read_xml(document.bytes);
  const auto start = std::ranges::find(xml.tokens, XmlToken::Kind::start, &XmlToken::kind);
  root = static_cast<size_t>(start - xml.tokens.begin());
  if (start->local() != root_name)
    fail("the root element must be <{}> (found <{}>)", root_name, start->local().substr(0, 32));
}

bool BilingualXml::is(size_t element, std::string_view name) const {
  return token(element).local() == name && token(element).space() == token(root).space();
}

std::vector<size_t> BilingualXml::children(size_t element) const {
  std::vector<size_t> children;
  for (size_t i = element + 1; i < token(element).partner; i++) {
    if (token(i).kind != XmlToken::Kind::start) continue;
    children.push_back(i);
    i = token(i).partner;
  }
  return children;
}

size_t BilingualXml::find(std::span<const size_t> elements, std::string_view name) const {
  const auto found = std::ranges::find_if(elements, [&](size_t element) { return is(element, name); });
  return found == elements.end() ? kNone : *found;
}

bool BilingualXml::is_blank(size_t element) const {
  for (size_t i = element + 1; i < token(element).partner; i++) {
    const XmlToken& t = token(i);
    if (t.kind == XmlToken::Kind::start) return false;
    if (t.kind == XmlToken::Kind::text && !is_blank_text(document.slice(t.begin, t.end))) return false;
  }
  return true;
}

bool BilingualXml::is_empty_tag(size_t element) const {
  return document.slice(token(element).begin, token(element).end).ends_with("/>");
}

ByteRange BilingualXml::whole(size_t element) const {
  const XmlToken& start = token(element);
  return {start.begin, is_empty_tag(element) ? start.end : token(start.partner).end};
}

ByteRange BilingualXml::content(size_t element) const {
  const XmlToken& start = token(element);
  return {start.end, is_empty_tag(element) ? start.end : token(start.partner).begin};
}

std::string_view BilingualXml::written_name(size_t element) const {
  const std::string_view tag = document.slice(token(element).begin + 1, token(element).end);
  return tag.substr(0, tag.find_first_of(" \t\r\n/>"));
}

std::vector<BilingualXml::WrittenAttribute> BilingualXml::written_attributes(size_t element) const {
  std::vector<WrittenAttribute> attributes;
  std::string_view tag = document.slice(token(element).begin, token(element).end);
  tag.remove_suffix(is_empty_tag(element) ? 2 : 1);
  tag.remove_prefix(1 + written_name(element).size());
  // Each attribute is white space, a name, "=" and a value in quotes, as the XML is well formed.
  while (!is_blank_text(tag)) {
    const size_t begin = tag.find_first_not_of(kXmlBlank), quote = tag.find_first_of("\"'");
    const size_t end = tag.find(tag[quote], quote + 1) + 1;
    attributes.push_back({tag.substr(begin, tag.find_first_of(" \t\r\n=", begin) - begin), tag.substr(0, end)});
    tag.remove_prefix(end);
  }
  return attributes;
}

std::string BilingualXml::opened_tag(size_t element, std::span<const std::string_view> without) const {
  std::string tag = fmt::format("<{}", written_name(element));
  for (const WrittenAttribute& attribute : written_attributes(element))
    if (std::ranges::find(without, attribute.name) == without.end()) tag += attribute.bytes;
  return tag;
}

std::string BilingualXml::copied_attributes(size_t source, size_t other) const {
  std::unordered_set<std::string_view> present;
  if (other != kNone)
    for (const WrittenAttribute& attribute : written_attributes(other)) present.insert(attribute.name);
  std::string copied;
  for (const WrittenAttribute& attribute : written_attributes(source))
    if ((attribute.name == "xmlns" || attribute.name.starts_with("xmlns:") || attribute.name == "xml:space") &&
        !present.contains(attribute.name))
      copied += attribute.bytes;
  return copied;
}

std::string BilingualXml::end_tag(size_t element) const { return fmt::format("</{}>", written_name(element)); }

std::string_view BilingualXml::indentation(size_t element) const {
  const std::string_view before = document.slice(0, token(element).begin);
  const size_t last = before.find_last_not_of(" \t");
  if (last == before.npos || before[last] != '\n') return {};
  return before.substr(last > 0 && before[last - 1] == '\r' ? last - 1 : last);
}

std::optional<TextPart> BilingualXml::copied_part(size_t element, const InlineMarkupRule& rule,
                                                  WhiteSpace white_space) {
  RunMaker maker(*this, rule);
  const size_t count = document.parts.size();
  add_part(document, maker.items(element), white_space);
  if (document.parts.size() == count) return std::nullopt;
  TextPart part = std::move(document.parts.back());
  document.parts.pop_back();
  const ByteRange all = content(element);
  part.source = {part.begin, part.end};
  part.before = document.slice(all.begin, part.begin);
  part.after = document.slice(part.end, all.end);
  part.keeps_tag_order = maker.keeps_order();
  return part;
}

}  // namespace qkv
