#include "documents/office/open_document.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "documents/inline_run.h"
#include "documents/xml_tokens.h"

namespace qkv {
namespace {

constexpr std::string_view kOdfNames = "urn:oasis:names:tc:opendocument:xmlns:";

enum class OdfRole { other, paragraph, inline_element, line_break, space, tab, skipped, cell, style };

// Elements by their names behind kOdfNames. Within a paragraph, the others stay as they are: fields, marks, notes,
// frames.
OdfRole odf_role(std::string_view name) {
  static const std::unordered_map<std::string_view, OdfRole> roles = {
      {"text:1.0 p", OdfRole::paragraph},
      {"text:1.0 h", OdfRole::paragraph},
      {"presentation:1.0 header-decl", OdfRole::paragraph},
      {"presentation:1.0 footer-decl", OdfRole::paragraph},
      {"text:1.0 span", OdfRole::inline_element},
      {"text:1.0 a", OdfRole::inline_element},
      {"text:1.0 meta", OdfRole::inline_element},
      {"text:1.0 ruby", OdfRole::inline_element},
      {"text:1.0 ruby-base", OdfRole::inline_element},
      {"text:1.0 line-break", OdfRole::line_break},
      {"text:1.0 s", OdfRole::space},
      {"text:1.0 tab", OdfRole::tab},
      {"text:1.0 tracked-changes", OdfRole::skipped},
      {"table:1.0 tracked-changes", OdfRole::skipped},
      {"table:1.0 table-cell", OdfRole::cell},
      {"table:1.0 covered-table-cell", OdfRole::cell},
      {"style:1.0 style", OdfRole::style},
  };
  // An element that only LibreOffice writes.
  if (name == "urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0 content-control")
    return OdfRole::inline_element;
  if (!name.starts_with(kOdfNames)) return OdfRole::other;
  const auto found = roles.find(name.substr(kOdfNames.size()));
  return found == roles.end() ? OdfRole::other : found->second;
}

// Returns the attribute of this name behind kOdfNames; nullptr if there is none.
const std::string* odf_attribute(const XmlToken& token, std::string_view name) {
  const auto found = std::ranges::find_if(token.attributes(), [&](const auto& attribute) {
    const std::string_view full = *attribute.first;
    return full.starts_with(kOdfNames) && full.substr(kOdfNames.size()) == name;
  });
  return found == token.attributes().end() ? nullptr : &found->second;
}

constexpr size_t kMostOdfParagraphs = 4;  // within each other, as tags

void append_odf_attribute(std::string_view text, std::string& to) {
  std::string escaped;
  kXmlSpelling.append(text, escaped);
  for (const char c : escaped) {
    if (c == '"')
      to += "&quot;";
    else if (c == '\'')
      to += "&apos;";
    else
      to += c;
  }
}

constexpr TextSpelling kOdfAttributeSpelling = {decode_xml, append_odf_attribute};

// Returns the place of an attribute's value in a start tag of well-formed XML; expat does not report it. local: the
// name behind its prefix.
std::optional<ByteRange> odf_attribute_value(const SplitText& document, const XmlToken& tag, std::string_view local) {
  constexpr std::string_view kSpace = "\t\n\r ";
  const std::string_view bytes = document.slice(0, tag.end);
  size_t at = bytes.find_first_of("\t\n\r />", tag.begin);
  for (;;) {
    at = bytes.find_first_not_of(kSpace, at);
    const size_t equals = bytes.find('=', at);
    if (equals == bytes.npos) return std::nullopt;
    std::string_view name = bytes.substr(at, equals - at);
    name = name.substr(0, name.find_first_of(kSpace));
    const size_t quote = bytes.find_first_of("\"'", equals);
    const size_t end = bytes.find(bytes[quote], quote + 1);
    if (name.ends_with(local) && name.substr(0, name.size() - local.size()).ends_with(':'))
      return ByteRange{quote + 1, end};
    at = end + 1;
  }
}

class OpenDocumentSplitter {
 public:
  OpenDocumentSplitter(SplitText& document, const XmlTokens& xml, bool keeps_code)
      : document_(document), tokens_(xml.tokens) {
    if (keeps_code) code_styles_ = {"Source_20_Text", "Preformatted_20_Text", "Source_Text", "Preformatted_Text"};
  }

  void split() {
    for (size_t i = 0; i < tokens_.size(); i++) {
      if (tokens_[i].kind == XmlToken::Kind::start)
        i = start(i);
      else if (tokens_[i].kind == XmlToken::Kind::end)
        end(i);
      else
        add_content(tokens_[i]);
    }
    std::ranges::sort(document_.parts, {}, &TextPart::begin);  // paragraphs within others end before them
  }

 private:
  static constexpr size_t kNone = XmlToken::kNone;

  struct Paragraph {
    bool is_kept;
    size_t kept_end = kNone;  // token that ends the element whose bytes stay, if within one
    bool follows_line_break = false;
    std::vector<RunItem> run = {};
  };

  OdfRole role_of(const XmlToken& token) {
    const auto [place, is_new] = roles_.try_emplace(token.name);
    if (!is_new) return place->second;
    return place->second = odf_role(*token.name);
  }

  // Returns the last token that has been read.
  size_t start(size_t i) {
    const XmlToken& token = tokens_[i];
    const OdfRole role = role_of(token);
    if (role == OdfRole::skipped) return token.partner;
    if (role == OdfRole::style) read_style(i);
    if (role == OdfRole::cell) add_string_value(token);
    if (role == OdfRole::paragraph)
      start_paragraph(token);
    else if (!open_.empty() && open_.back().kept_end == kNone)
      start_within(token, role);
    parents_.push_back(i);
    return i;
  }

  void start_paragraph(const XmlToken& token) {
    if (!open_.empty() && open_.back().kept_end == kNone) flush(open_.back());
    open_.push_back({.is_kept = is_code(token) || (!parents_.empty() && is_kept_cell(tokens_[parents_.back()]))});
  }

  // An element within a paragraph.
  void start_within(const XmlToken& token, OdfRole role) {
    Paragraph& paragraph = open_.back();
    const bool is_break = role == OdfRole::line_break || role == OdfRole::space;
    if (role == OdfRole::inline_element && !is_code(token))
      return paragraph.run.push_back({RunItem::Kind::open, token.begin, token.end, token.name});
    paragraph.kept_end = token.partner;
    const bool ends_text = role == OdfRole::tab || (open_.size() >= kMostOdfParagraphs && !is_break) ||
                           (role == OdfRole::line_break && ends_with_line_break(paragraph));
    if (ends_text) flush(paragraph);
    if (ends_text && !is_break) return;
    paragraph.follows_line_break |= role == OdfRole::line_break;
    const size_t end = std::max(token.end, tokens_[token.partner].end);
    paragraph.run.push_back({is_break ? RunItem::Kind::line_break : RunItem::Kind::single, token.begin, end});
  }

  // Whether a line break here ends the text before it.
  bool ends_with_line_break(const Paragraph& paragraph) const {
    if (paragraph.follows_line_break) return true;
    auto item = paragraph.run.rbegin();
    while (item != paragraph.run.rend() && item->kind == RunItem::Kind::close) ++item;
    return item != paragraph.run.rend() && item->kind == RunItem::Kind::text &&
           ends_like_sentence(document_.slice(item->begin, item->end));
  }

  void end(size_t i) {
    parents_.pop_back();
    if (open_.empty()) return;
    Paragraph& paragraph = open_.back();
    const XmlToken& token = tokens_[i];
    if (paragraph.kept_end != kNone) {
      if (paragraph.kept_end == i) paragraph.kept_end = kNone;
    } else if (role_of(token) == OdfRole::paragraph) {
      flush(paragraph);
      open_.pop_back();
    } else {
      paragraph.run.push_back({RunItem::Kind::close, token.begin, token.end, token.name});
    }
  }

  void add_content(const XmlToken& token) {
    if (open_.empty() || open_.back().kept_end != kNone) return;
    Paragraph& paragraph = open_.back();
    const bool is_text = token.kind == XmlToken::Kind::text;
    const std::string_view bytes = document_.slice(token.begin, token.end);
    if (is_text && bytes.find_first_not_of("\t\n\r ") != bytes.npos) paragraph.follows_line_break = false;
    paragraph.run.push_back({is_text ? RunItem::Kind::text : RunItem::Kind::single, token.begin, token.end});
  }

  void flush(Paragraph& paragraph) {
    const size_t before = document_.parts.size();
    if (!paragraph.is_kept) add_part(document_, paragraph.run);
    if (document_.parts.size() > before) drop_plain_spans(document_.parts.back());
    paragraph.run.clear();
    paragraph.follows_line_break = false;
  }

  // Office programs divide words by spans without an effect, which hold the number of a revision.
  void drop_plain_spans(TextPart& part) const {
    const auto is_plain = [&](const InlineTag& tag) {
      if (tag.kind == InlineTag::Kind::single || tag.partner == InlineTag::kNone) return false;
      return plain_spans_.contains(tag.kind == InlineTag::Kind::open ? tag.begin : part.tags[tag.partner].begin);
    };
    std::vector<size_t> places(part.tags.size());  // of the tags that remain
    std::vector<InlineTag> tags;
    for (size_t i = 0; i < part.tags.size(); i++) {
      places[i] = tags.size();
      if (!is_plain(part.tags[i])) tags.push_back(part.tags[i]);
    }
    for (InlineTag& tag : tags)
      if (tag.partner != InlineTag::kNone) tag.partner = places[tag.partner];
    part.tags = std::move(tags);
  }

  // An automatic style of this document: of code, or without an effect.
  void read_style(size_t i) {
    const XmlToken& style = tokens_[i];
    const std::string* name = odf_attribute(style, "style:1.0 name");
    const std::string* family = odf_attribute(style, "style:1.0 family");
    if (!name || !family) return;
    const std::string* parent = odf_attribute(style, "style:1.0 parent-style-name");
    if (parent && code_styles_.contains(*parent)) code_styles_.insert(*name);
    if (*family != "text" || style.attributes().size() != 2) return;
    for (size_t t = i + 1; t < style.partner; t++)
      if (std::ranges::any_of(tokens_[t].attributes(), [](const auto& a) { return !a.first->ends_with("rsid"); }))
        return;
    plain_styles_.insert(*name);
  }

  // Whether an element has a style of code. Notes where spans have a style without an effect.
  bool is_code(const XmlToken& token) {
    const std::string* style = odf_attribute(token, "text:1.0 style-name");
    if (style && token.local() == "span" && plain_styles_.contains(*style)) plain_spans_.insert(token.begin);
    return style && code_styles_.contains(*style);
  }

  // Whether the text of a cell is made from its value: a number, a date, or the result of a formula.
  bool is_kept_cell(const XmlToken& parent) {
    if (role_of(parent) != OdfRole::cell) return false;
    const std::string* type = odf_attribute(parent, "office:1.0 value-type");
    return odf_attribute(parent, "table:1.0 formula") || (type && *type != "string");
  }

  void add_string_value(const XmlToken& cell) {
    if (!odf_attribute(cell, "office:1.0 string-value") || odf_attribute(cell, "table:1.0 formula")) return;
    const auto value = odf_attribute_value(document_, cell, "string-value");
    if (!value) return;
    const size_t before = document_.parts.size();
    add_part(document_, std::vector<RunItem>{{RunItem::Kind::text, value->begin, value->end}});
    if (document_.parts.size() > before) document_.parts.back().spelling = &kOdfAttributeSpelling;
  }

  SplitText& document_;
  const std::vector<XmlToken>& tokens_;
  std::unordered_map<const std::string*, OdfRole> roles_;  // of names
  std::set<std::string> code_styles_, plain_styles_;
  std::set<size_t> plain_spans_;  // bytes where they begin
  std::vector<size_t> parents_;   // start tags of the elements that are open
  std::vector<Paragraph> open_;   // within each other
};

SplitText check_odf_manifest(std::string xml) {
  for (const XmlToken& token : read_xml(xml).tokens)
    if (token.kind == XmlToken::Kind::start && token.local() == "encryption-data")
      fail("the document is encrypted; only documents without a password are translated");
  return {};
}

}  // namespace

SplitText split_open_document(std::string xml) {
  SplitText document{.bytes = std::move(xml), .spelling = &kXmlSpelling};
  const XmlTokens tokens = read_xml(document.bytes);
  OpenDocumentSplitter(document, tokens, true).split();
  if (document.parts.empty()) OpenDocumentSplitter(document, tokens, false).split();
  return document;
}

SplitFunction open_document_member(std::string_view name) {
  if (name == "META-INF/manifest.xml")
    return [](std::string xml, const auto&) { return check_odf_manifest(std::move(xml)); };
  const std::string_view base = name.substr(name.rfind('/') + 1);
  if (base != "content.xml" && base != "styles.xml") return nullptr;
  return [](std::string xml, const auto&) { return split_open_document(std::move(xml)); };
}

}  // namespace qkv
