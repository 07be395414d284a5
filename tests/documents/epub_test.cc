#include <gtest/gtest.h>

#include "documents/archive.h"
#include "documents/document.h"
#include "qkv/error.h"
#include "tests/documents/archives.h"

namespace qkv {
namespace {

using testing::zip_of;
using Members = std::vector<std::pair<std::string, std::string>>;
using Texts = std::vector<std::string>;

Texts parts_of(const Members& members) { return Document(*find_document_format("epub"), zip_of(members)).part_texts(); }

std::string epub_error(const Members& members) {
  try {
    parts_of(members);
    return "none";
  } catch (const Error& error) {
    return error.what();
  }
}

const std::string kPackage =
    "<?xml version=\"1.0\"?>\n<package xmlns=\"http://www.idpf.org/2007/opf\"><metadata "
    "xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title id=\"t\">Cats &amp; <!-- c "
    "-->dogs</dc:title><dc:creator>Ann "
    "Author</dc:creator><dc:description>About cats.</dc:description><dc:description>&lt;p>About&lt;/p></dc:description>"
    "<dc:subject>Animals</dc:subject><dc:language>en</dc:language><meta "
    "property=\"x\">meta</meta></metadata></package>";

TEST(Epub, TitleDescriptionAndSubjectsAreTranslated) {
  EXPECT_EQ(parts_of({{"OPS/content.opf", kPackage}}), Texts({"Cats & dogs", "About cats.", "Animals"}));
}

TEST(Epub, LabelsOfTheTableOfContentsAreTranslated) {
  EXPECT_EQ(
      parts_of({{"toc.ncx",
                 "<!DOCTYPE ncx PUBLIC \"-//NISO//DTD ncx 2005-1//EN\" "
                 "\"http://www.daisy.org/z3986/2005/ncx-2005-1.dtd\">\n<ncx "
                 "xmlns=\"http://www.daisy.org/z3986/2005/ncx/\"><head><meta name=\"dtb:uid\" content=\"x\"/></head>"
                 "<docTitle><text>Cats</text></docTitle><docAuthor><text>Ann</text></docAuthor><navMap><navPoint>"
                 "<navLabel><text>One&nbsp;cat</text></navLabel><content src=\"a.xhtml\"/></navPoint></navMap>"
                 "</ncx>"}}),
      Texts({"Cats", "One\u00A0cat"}));
}

TEST(Epub, ChaptersAreTranslatedAndOtherMembersStay) {
  const std::string chapter = "<html xmlns=\"http://www.w3.org/1999/xhtml\"><p>Text</p></html>";
  const Members members = {{"mimetype", "application/epub+zip"},
                           {"META-INF/container.xml", "<container/>"},
                           {"a.xhtml", chapter},
                           {"b.HTML", "<p>not<br>well &formed"},
                           {"c.htm", chapter},
                           {"d.xml", chapter},
                           {"page-map.xml", "<page-map><page name=\"1\">Page</page></page-map>"},
                           {"style.css", "p { }"},
                           {"image.svg", "<svg><text>Text</text></svg>"}};
  const std::string archive = zip_of(members);
  const Document document(*find_document_format("epub"), archive);
  EXPECT_EQ(document.part_texts(), Texts({"Text", "not well &formed", "Text", "Text"}));
  EXPECT_EQ(document.replaced(Texts({"Text", "not<br>well &formed", "Text", "Text"})), archive);
  const std::string changed = document.replaced(Texts({"One", "Two", "Three", "Four"}));
  // Readers look for the type at byte 30, neither compressed nor with an extra field.
  EXPECT_EQ(changed.substr(0, 58), archive.substr(0, 58));
  EXPECT_EQ(changed.substr(28, 30), std::string("\0\0mimetypeapplication/epub+zip", 30));
  Members expected = members;
  expected[2].second.replace(chapter.find("Text"), 4, "One");
  expected[3].second = "<p>Two";
  expected[4].second.replace(chapter.find("Text"), 4, "Three");
  expected[5].second.replace(chapter.find("Text"), 4, "Four");
  Members written;
  for (ArchiveMember& member : read_members(
           changed, [](auto) { return true; }, uint64_t{1} << 20))
    written.emplace_back(member.name, member.bytes);
  EXPECT_EQ(written, expected);
}

TEST(Epub, EncryptedTextsAreRefusedAndObfuscatedFontsAreNot) {
  const auto encryption = [](const std::string& name) {
    return "<encryption xmlns=\"urn:oasis:names:tc:opendocument:xmlns:container\"><EncryptedData "
           "xmlns=\"http://www.w3.org/2001/04/xmlenc#\"><CipherData><CipherReference URI=\"" +
           name + "\"/></CipherData></EncryptedData></encryption>";
  };
  EXPECT_EQ(epub_error({{"a.xhtml", "\xFF"}, {"META-INF/encryption.xml", encryption("a.xhtml")}}),
            "META-INF/encryption.xml: a.xhtml is encrypted; only books without DRM are translated");
  EXPECT_EQ(parts_of({{"a.xhtml", "<p>Text</p>"}, {"META-INF/encryption.xml", encryption("fonts/a.otf")}}),
            Texts({"Text"}));
}

TEST(Epub, DamagedBooksAreRefused) {
  EXPECT_EQ(epub_error({{"mimetype", "application/epub+zip"}, {"META-INF/container.xml", "<container/>"}}),
            "the archive has no text of the format epub");
  EXPECT_EQ(epub_error({{"a.opf", "<package>"}}), "a.opf: line 1: not well-formed XML (no element found)");
  EXPECT_EQ(epub_error({{"a.ncx", "<!DOCTYPE x [<!ENTITY e 'x'>]><x/>"}}),
            "a.ncx: line 1: declares the entity e, which is refused");
  EXPECT_EQ(epub_error({{"a.xhtml", "\xFF"}}), "a.xhtml: the text must be UTF-8 (byte 1 is not)");
}

}  // namespace
}  // namespace qkv
