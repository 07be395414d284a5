// Word documents. Paragraphs are translated, also those of headers, footers, notes, comments, text boxes and diagrams.
// Fields other than hyperlinks, deleted text, formulas, charts and document properties stay.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "documents/document.h"
#include "documents/office/office_runs.h"

namespace qkv {
namespace {

using namespace std::string_view_literals;

constexpr std::pair<std::string_view, OfficeRole> kWordRoles[] = {
    {"p", OfficeRole::paragraph},
    {"r", OfficeRole::run},
    {"rPr", OfficeRole::run_properties},
    {"t", OfficeRole::text},
    {"hyperlink", OfficeRole::container},
    {"ins", OfficeRole::container},
    {"moveTo", OfficeRole::container},
    {"smartTag", OfficeRole::container},
    {"customXml", OfficeRole::container},
    {"dir", OfficeRole::container},
    {"bdo", OfficeRole::container},
    {"sdt", OfficeRole::container},
    {"sdtPr", OfficeRole::properties},
    {"sdtEndPr", OfficeRole::properties},
    {"smartTagPr", OfficeRole::properties},
    {"customXmlPr", OfficeRole::properties},
    {"sdtContent", OfficeRole::content},
    // Marks of the spelling checker and of the last layout, and places to divide words of the source.
    {"proofErr", OfficeRole::unseen},
    {"noProof", OfficeRole::unseen},
    {"lang", OfficeRole::unseen},
    {"lastRenderedPageBreak", OfficeRole::unseen},
    {"softHyphen", OfficeRole::unseen},
    {"noBreakHyphen", OfficeRole::hyphen},
    {"br", OfficeRole::line_break},
    {"cr", OfficeRole::line_break},
    {"tab", OfficeRole::part_end},
    {"ptab", OfficeRole::part_end},
    {"fldChar", OfficeRole::field},
};

OfficeRole word_role(const XmlToken& tag) {
  if (!is_in_office_space(tag, "wordprocessingml")) return OfficeRole::other;
  const auto found = std::ranges::find(kWordRoles, tag.local(), &std::pair<std::string_view, OfficeRole>::first);
  if (found == std::end(kWordRoles)) return OfficeRole::other;
  const std::string_view type = found->second == OfficeRole::line_break ? office_attribute(tag, "type") : "";
  return type == "page" || type == "column" ? OfficeRole::part_end : found->second;
}

// Reads <w:noBreakHyphen/>, the only tag in a text, as a hyphen.
size_t decode_word(std::string_view text, std::string& to) {
  if (!text.starts_with('<') || text.starts_with("<!")) return kXmlSpelling.decode(text, to);
  to += '-';
  return text.find('>') + 1;
}

const TextSpelling kWordSpelling = {decode_word, kXmlSpelling.append};

SplitText split_word_text(std::string xml, const DocumentOptions&) {
  static const OfficeMarkup markup = {.role = word_role, .spelling = &kWordSpelling, .marks_space = true};
  return split_office_text(std::move(xml), markup);
}

SplitText split_word_diagram(std::string xml, const DocumentOptions&) { return split_drawing_text(std::move(xml)); }

SplitFunction word_member(std::string_view name) {
  constexpr std::array kTexts = {"word/document"sv,  "word/header"sv,   "word/footer"sv,
                                 "word/footnotes"sv, "word/endnotes"sv, "word/comments"sv};
  constexpr std::array kDiagrams = {"word/diagrams/data"sv, "word/diagrams/drawing"sv};
  const auto is_one = [&](std::string_view stem) { return is_numbered_member(name, stem); };
  if (std::ranges::any_of(kTexts, is_one)) return split_word_text;
  return std::ranges::any_of(kDiagrams, is_one) ? split_word_diagram : nullptr;
}

}  // namespace

namespace document_formats {

const DocumentFormat& docx() {
  static const DocumentFormat format = {
      "docx", "Word documents", {".docx", ".docm", ".dotx", ".dotm"}, nullptr, word_member};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
