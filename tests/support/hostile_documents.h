// Documents that are made to take much time or memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/documents/archives.h"

namespace qkv::testing {

struct HostileDocument {
  std::string name, format, bytes;
  std::string error;  // its beginning; "": the document is read
};

inline std::string times(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; i++) all += text;
  return all;
}

// Returns a root with elements without content, whose names vary so that they do not compress like a bomb. Each tag has
// these bytes behind its name.
inline std::string elements(const std::string& root, size_t count, std::string_view behind_name) {
  std::string all = "<" + root + " version=\"1.2\">";
  for (uint32_t i = 0; i < count; i++) {
    all += {'<', static_cast<char>('a' + (i * 2654435761u >> 28))};
    all += behind_name;
  }
  return all + "</" + root + ">";
}

// Entities of which each has ten of the one before ("billion laughs").
inline std::string xml_bomb() {
  std::string entities = "<!ENTITY a \"ha\">";
  for (char name = 'b'; name < 'k'; name++) {
    const std::string before = {'&', static_cast<char>(name - 1), ';'};
    entities += std::string("<!ENTITY ") + name + " \"" + times(before, 10) + "\">";
  }
  return "<!DOCTYPE x [" + entities + "]><x>&j;</x>";
}

// Returns an archive in which the headers of a member state another size.
inline std::string with_stated_size(std::string archive, std::string_view member, uint32_t size) {
  struct Header {
    std::string_view signature;
    size_t size_at, name_at;
  };
  for (const Header& header : {Header{"PK\x03\x04", 22, 30}, Header{"PK\x01\x02", 24, 46}})
    for (size_t at = archive.find(header.signature); at != archive.npos; at = archive.find(header.signature, at + 1))
      if (archive.compare(at + header.name_at, member.size(), member) == 0)
        for (size_t i = 0; i < 4; i++) archive[at + header.size_at + i] = static_cast<char>(size >> 8 * i);
  return archive;
}

inline std::vector<HostileDocument> hostile_documents() {
  // Members that are read as XML, of each format that is an archive; without a member the document is XML.
  const std::pair<std::string, std::string> places[] = {
      {"docx", "word/document.xml"},
      {"pptx", "ppt/slides/slide1.xml"},
      {"xlsx", "xl/sharedStrings.xml"},
      {"xlsx", "xl/tables/table1.xml"},
      {"odt", "content.xml"},
      {"odt", "META-INF/manifest.xml"},
      {"odp", "content.xml"},
      {"ods", "content.xml"},
      {"epub", "a.opf"},
      {"epub", "toc.ncx"},
      {"epub", "META-INF/encryption.xml"},
      {"tmx", ""},
      {"xliff", ""},
  };
  std::vector<HostileDocument> all;
  for (const auto& [format, member] : places) {
    const auto document = [&, &name = member](const std::string& xml) {
      return name.empty() ? xml : zip_of({{"x", ""}, {name, xml}});
    };
    const std::string line = (member.empty() ? "" : member + ": ") + "line 1: ";
    const auto add = [&, &kind = format](const std::string& name, const std::string& bytes, const std::string& error) {
      all.push_back({name + " in " + kind + " " + member, kind, bytes, error});
    };
    add("XML bomb", document(xml_bomb()), line + "declares the entity a, which is refused");
    add("entity of a file", document("<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/hostname\">]><x>&e;</x>"),
        line + "declares the entity e, which is refused");
    add("parameter entity", document("<!DOCTYPE x [<!ENTITY % p SYSTEM \"http://a.b/c\">%p;]><x/>"),
        line + "declares the entity p, which is refused");
    const std::string root = member.empty() ? format : "x";
    const bool has_text = !member.starts_with("META-INF");
    add("many tags", document(elements(root, 150'000, "/>")),
        has_text ? "" : "the archive has no text of the format " + format);
    if (format == "docx" || format == "tmx") {
      add("almost too many tags", document(elements(root, 250'000, "/>")), "");
      add("many attributes", document(elements(root, 100'000, " a=\"\"/>")), "");
      add("too many tags", document(elements(root, 300'000, "/>")), line + "it has too many tags for its size");
    }
    add("nested elements", document(times("<x>", 10'000) + times("</x>", 10'000)),
        line + "elements are nested more than 512 deep");
    if (member.empty()) continue;
    const std::string too_large = "the text of the archive is too large: " + member + " has ";
    add("zip bomb", document(std::string(4 << 20, ' ')), too_large + "4194304 bytes (");
    add("member of 2 GB", with_stated_size(document("<x>text</x>"), member, 0x7FFFFFFF),
        too_large + "2147483647 bytes (");
    add("member larger than stated", with_stated_size(document("<x>" + std::string(9999, 'x') + "</x>"), member, 10),
        member + " is damaged: ");
  }
  const std::string html = times("<b><div>", 10'000) + "text";
  all.push_back({"nested elements in html", "html", html, ""});
  all.push_back({"XML bomb in html", "html", xml_bomb(), ""});
  for (const std::string& chapter : {html, xml_bomb()})
    all.push_back({"hostile HTML in epub", "epub", zip_of({{"a.xhtml", chapter}}), ""});
  all.push_back({"zip bomb without text", "docx",
                 zip_of({{"word/media/image1.png", std::string(4 << 20, ' ')}, {"word/document.xml", "<x/>"}}), ""});
  return all;
}

}  // namespace qkv::testing
