// EPUB books. The text of chapters is split as XHTML; title, description and subjects of the book, and the labels of
// its table of contents (toc.ncx) are parts as well. Fonts, images, styles and names of authors stay.
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "core/fail.h"
#include "documents/document.h"
#include "documents/html.h"
#include "documents/inline_run.h"
#include "documents/xml_tokens.h"

namespace qkv {
namespace {

bool is_any_epub_name(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Whether an element of the package document has a text of the book's description.
bool is_epub_metadata(const XmlToken& element, std::string_view) {
  return element.space().starts_with("http://purl.org/dc/elements/") &&
         is_any_epub_name(element.local(), {"title", "description", "subject"});
}

bool is_ncx_label(const XmlToken& element, std::string_view parent) {
  return element.local() == "text" && is_any_epub_name(parent, {"docTitle", "navLabel"});
}

// Adds the text of the element that starts at token i. Markup in it stays, and so does a text that is HTML itself.
void add_epub_element(SplitText& document, const std::vector<XmlToken>& tokens, size_t i) {
  std::vector<RunItem> run;
  for (size_t t = i + 1; t < tokens[i].partner; t++) {
    const bool is_text = tokens[t].kind == XmlToken::Kind::text;
    const size_t begin = tokens[t].begin;
    if (tokens[t].kind == XmlToken::Kind::start) t = tokens[t].partner;
    run.push_back({is_text ? RunItem::Kind::text : RunItem::Kind::single, begin, tokens[t].end});
  }
  const size_t before = document.parts.size();
  add_part(document, run);
  if (document.parts.size() > before && document.parts.back().text.find("</") != std::string::npos)
    document.parts.pop_back();
}

// Splits XML whose parts are the elements that are wanted, by their start tag and the name of their parent.
SplitText split_epub_xml(std::string xml, bool (*is_wanted)(const XmlToken& element, std::string_view parent)) {
  SplitText document{.bytes = std::move(xml), .spelling = &kXmlSpelling};
  const XmlTokens read = read_xml(document.bytes);
  std::vector<std::string_view> open = {""};
  for (size_t i = 0; i < read.tokens.size(); i++) {
    const XmlToken& token = read.tokens[i];
    if (token.kind == XmlToken::Kind::end) {
      open.pop_back();
    } else if (token.kind == XmlToken::Kind::start && is_wanted(token, open.back())) {
      add_epub_element(document, read.tokens, i);
      i = token.partner;
    } else if (token.kind == XmlToken::Kind::start) {
      open.push_back(token.local());
    }
  }
  return document;
}

SplitText split_epub_package(std::string xml, const DocumentOptions&) {
  return split_epub_xml(std::move(xml), is_epub_metadata);
}

SplitText split_ncx(std::string xml, const DocumentOptions&) { return split_epub_xml(std::move(xml), is_ncx_label); }

SplitText split_chapter(std::string xhtml, const DocumentOptions&) { return split_xhtml(std::move(xhtml)); }

// Some books have chapters with names of XML.
SplitText split_chapter_of_xml(std::string xml, const DocumentOptions&) {
  constexpr size_t kProlog = 4096;
  if (std::string_view(xml).substr(0, kProlog).find("<html") == std::string_view::npos) return {};
  return split_xhtml(std::move(xml));
}

SplitFunction epub_member(std::string_view name);

// Fonts may be obfuscated; texts must not be encrypted.
SplitText check_epub_encryption(std::string xml, const DocumentOptions&) {
  for (const XmlToken& token : read_xml(xml).tokens) {
    if (token.kind != XmlToken::Kind::start || token.local() != "CipherReference") continue;
    const std::string* member = token.attribute("URI");
    if (member && epub_member(*member)) fail("{} is encrypted; only books without DRM are translated", *member);
  }
  return {};
}

SplitFunction epub_member(std::string_view name) {
  if (name == "META-INF/encryption.xml") return check_epub_encryption;
  const std::string extension = ascii_lower(name.substr(std::min(name.rfind('.'), name.size())));
  if (is_any_epub_name(extension, {".xhtml", ".html", ".htm", ".xht"})) return split_chapter;
  if (extension == ".opf") return split_epub_package;
  if (extension == ".ncx") return split_ncx;
  return extension == ".xml" ? split_chapter_of_xml : nullptr;
}

}  // namespace

namespace document_formats {

const DocumentFormat& epub() {
  static const DocumentFormat format = {"epub", "EPUB books", {".epub"}, nullptr, epub_member};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
