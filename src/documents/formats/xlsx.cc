// Excel workbooks. The text of cells, comments and text boxes is translated, and the line breaks in it stay. Numbers,
// formulas, their results, names of sheets, charts and phonetic guides stay, and so do texts that are the header of a
// column of a table or of a pivot table: formulas use them as names.
#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "documents/document.h"
#include "documents/office/office_runs.h"
#include "documents/xml_tokens.h"

namespace qkv {
namespace {

// Returns the code of the escape of Excel that the text begins with, such as "_x000D_"; −1 if there is none, or if it
// is that of half a character.
int32_t escaped_code(std::string_view text) {
  if (text.size() < 7 || !text.starts_with("_x") || text[6] != '_') return -1;
  int32_t code = 0;
  for (const char c : text.substr(2, 4)) {
    const bool is_digit = c >= '0' && c <= '9', is_upper = c >= 'A' && c <= 'F', is_lower = c >= 'a' && c <= 'f';
    if (!is_digit && !is_upper && !is_lower) return -1;
    code = 16 * code + (c - (is_digit ? '0' : is_upper ? 'A' - 10 : 'a' - 10));
  }
  return code == 0 || (code >= 0xD800 && code < 0xE000) ? -1 : code;
}

size_t decode_cell(std::string_view text, std::string& to) {
  const int32_t code = escaped_code(text);
  if (code < 0) return kXmlSpelling.decode(text, to);
  const auto add = [&](int32_t byte) { to += static_cast<char>(byte); };
  if (code < 0x80)
    add(code);
  else if (code < 0x800)
    add(0xC0 | code >> 6), add(0x80 | (code & 0x3F));
  else
    add(0xE0 | code >> 12), add(0x80 | (code >> 6 & 0x3F)), add(0x80 | (code & 0x3F));
  return 7;
}

void append_cell(std::string_view text, std::string& to) {
  size_t done = 0;
  for (size_t i = text.find("_x"); i != text.npos; i = text.find("_x", i + 1)) {
    if (escaped_code(text.substr(i)) < 0) continue;
    kXmlSpelling.append(text.substr(done, i - done), to);
    to += "_x005F_";  // an underscore that begins no escape
    done = i + 1;
  }
  kXmlSpelling.append(text.substr(done), to);
}

const TextSpelling kCellSpelling = {decode_cell, append_cell};

OfficeRole cell_role(const XmlToken& tag) {
  if (!is_in_office_space(tag, "spreadsheetml")) return OfficeRole::other;
  const std::string_view name = tag.local();
  if (name == "si" || name == "is" || name == "text") return OfficeRole::paragraph;
  if (name == "r") return OfficeRole::run;
  if (name == "rPr") return OfficeRole::run_properties;
  if (name == "t") return OfficeRole::text;
  return OfficeRole::other;
}

SplitText split_cells(std::string xml, const DocumentOptions&) {
  static const OfficeMarkup markup = {
      .role = cell_role, .spelling = &kCellSpelling, .marks_space = true, .has_lines = true};
  return split_office_text(std::move(xml), markup);
}

SplitText keep_cells(std::string xml, const DocumentOptions&) {
  return {.bytes = std::move(xml), .spelling = &kCellSpelling};
}

// Most sheets have the texts of their cells in xl/sharedStrings.xml, and are large.
SplitText split_sheet(std::string xml, const DocumentOptions& options) {
  const bool has_text = xml.find("inlineStr") != xml.npos;
  return has_text ? split_cells(std::move(xml), options) : keep_cells(std::move(xml), options);
}

SplitText split_sheet_drawing(std::string xml, const DocumentOptions&) { return split_drawing_text(std::move(xml)); }

bool has_column_names(std::string_view name) {
  return is_numbered_member(name, "xl/tables/table") || is_numbered_member(name, "xl/pivotCache/pivotCacheDefinition");
}

SplitFunction workbook_member(std::string_view name) {
  if (is_numbered_member(name, "xl/worksheets/sheet")) return split_sheet;
  if (is_numbered_member(name, "xl/drawings/drawing")) return split_sheet_drawing;
  if (has_column_names(name)) return keep_cells;
  const bool has_cells = is_numbered_member(name, "xl/sharedStrings") || is_numbered_member(name, "xl/comments") ||
                         is_numbered_member(name, "xl/comments/comment");
  return has_cells ? split_cells : nullptr;
}

// Returns a text of XML with its characters decoded and without white space.
std::string as_column_name(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size();) {
    const size_t size = decode_cell(text.substr(i), name);
    if (size == 0) name += text[i];
    i += std::max<size_t>(size, 1);
  }
  std::erase_if(name, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  return name;
}

XmlTokens read_table(const std::string& name, const SplitText& member) {
  try {
    return read_xml(member.bytes);
  } catch (const Error& error) {
    fail("{}: {}", name, error.what());
  }
}

void add_column_names(const XmlTokens& xml, std::set<std::string>& names) {
  for (const XmlToken& token : xml.tokens) {
    if (token.kind != XmlToken::Kind::start || (token.local() != "tableColumn" && token.local() != "cacheField"))
      continue;
    std::string name;
    kXmlSpelling.append(office_attribute(token, "name"), name);  // expat has decoded it
    names.insert(as_column_name(name));
  }
}

// Returns the places of the cells with these texts.
std::vector<ByteRange> find_cells(const SplitText& member, const std::set<std::string>& names) {
  const XmlTokens xml = read_xml(member.bytes);
  std::vector<ByteRange> found;
  for (size_t i = 0; i < xml.tokens.size(); i++) {
    const XmlToken& cell = xml.tokens[i];
    if (cell.kind != XmlToken::Kind::start || (cell.local() != "si" && cell.local() != "is")) continue;
    std::string text;
    for (i++; i < cell.partner; i++) {
      const XmlToken& token = xml.tokens[i];
      if (token.kind == XmlToken::Kind::start && token.local() == "rPh") i = token.partner;
      if (token.kind == XmlToken::Kind::text) text += member.slice(token.begin, token.end);
    }
    if (names.contains(as_column_name(text))) found.push_back({cell.begin, xml.tokens[cell.partner].end});
  }
  return found;
}

void remove_column_names(std::span<const std::string> members, std::span<SplitText> texts) {
  std::set<std::string> names;
  for (size_t i = 0; i < texts.size(); i++)
    if (has_column_names(members[i])) add_column_names(read_table(members[i], texts[i]), names);
  if (names.empty()) return;
  for (SplitText& text : texts) {
    if (text.parts.empty() || text.spelling != &kCellSpelling) continue;
    const std::vector<ByteRange> cells = find_cells(text, names);
    size_t next = 0;
    std::erase_if(text.parts, [&](const TextPart& part) {
      while (next < cells.size() && cells[next].end <= part.begin) next++;
      return next < cells.size() && cells[next].begin <= part.begin;
    });
  }
}

}  // namespace

namespace document_formats {

const DocumentFormat& xlsx() {
  static const DocumentFormat format = {
      .name = "xlsx",
      .description = "Excel workbooks",
      .extensions = {".xlsx", ".xlsm", ".xltx", ".xltm"},
      .split_member = workbook_member,
      .remove_parts = remove_column_names,
  };
  return format;
}

}  // namespace document_formats
}  // namespace qkv
