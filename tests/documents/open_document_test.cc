#include "documents/office/open_document.h"

#include <gtest/gtest.h>

#include "documents/archive.h"
#include "documents/restore_markup.h"
#include "qkv/error.h"
#include "tests/documents/archives.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using testing::translation;
using testing::zip_of;
using Texts = std::vector<std::string>;

const std::string kOdf = "urn:oasis:names:tc:opendocument:xmlns:";

// Content of a document, with the usual prefixes.
std::string content(const std::string& body, const std::string& styles = "") {
  std::string root = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<office:document-content";
  for (const char* prefix : {"office", "text", "table", "style", "presentation", "svg"})
    root += " xmlns:" + std::string(prefix) + "=\"" + kOdf + prefix + ":1.0\"";
  root += " xmlns:draw=\"" + kOdf + "drawing:1.0\" xmlns:officeooo=\"http://openoffice.org/2009/office\"";
  return root + "><office:automatic-styles>" + styles + "</office:automatic-styles><office:body>" + body +
         "</office:body></office:document-content>";
}

// The texts of the parts, with tags in braces: the bytes of the document.
Texts parts_of(const std::string& body, const std::string& styles = "") {
  Texts texts;
  const SplitText document = split_open_document(content(body, styles));
  for (const TextPart& part : document.parts) {
    std::string text = part.text;
    for (auto tag = part.tags.rbegin(); tag != part.tags.rend(); ++tag)
      text.insert(tag->at, "{" + std::string(document.bytes_of(*tag)) + "}");
    texts.push_back(text);
  }
  return texts;
}

// The content of the body, with translations of all of its parts.
std::string translated(const std::string& body, const std::vector<Translation>& translations) {
  const std::string xml = content(body);
  const Document document(*find_document_format("odt"), zip_of({{"mimetype", "x"}, {"content.xml", xml}}));
  const std::string archive = document.translated(translations);
  std::string bytes = read_members(
                          archive, [](auto name) { return name == "content.xml"; }, uint64_t{1} << 20)
                          .at(0)
                          .bytes;
  const size_t begin = xml.find(body);
  return bytes.substr(begin, bytes.size() - (xml.size() - body.size()));
}

std::string odf_error(const std::vector<std::pair<std::string, std::string>>& members, const char* format = "odt") {
  try {
    const Document document(*find_document_format(format), zip_of(members));
    return "none";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OpenDocument, ParagraphsHeadingsAndCellsAreParts) {
  EXPECT_EQ(parts_of("<office:text><text:h>A title</text:h><text:p>One &amp; two.</text:p><text:p/><text:list>"
                     "<text:list-item><text:p>Item</text:p></text:list-item></text:list><table:table><table:table-row>"
                     "<table:table-cell office:value-type=\"string\"><text:p>Cell</text:p><text:p>Second</text:p>"
                     "</table:table-cell></table:table-row></table:table></office:text>"),
            Texts({"A title", "One & two.", "Item", "Cell", "Second"}));
  EXPECT_EQ(parts_of("<office:presentation><presentation:footer-decl>A footer</presentation:footer-decl><draw:page>"
                     "<draw:frame><draw:text-box><text:p>Slide</text:p></draw:text-box></draw:frame>"
                     "<draw:custom-shape><text:p>Shape</text:p></draw:custom-shape><presentation:notes><draw:frame>"
                     "<draw:text-box><text:p>Notes</text:p></draw:text-box></draw:frame></presentation:notes>"
                     "</draw:page></office:presentation>"),
            Texts({"A footer", "Slide", "Shape", "Notes"}));
}

TEST(OpenDocument, InlineElementsAreTagsAndFieldsStayWhole) {
  EXPECT_EQ(parts_of("<text:p>The <text:span text:style-name=\"T1\">red</text:span> <text:a>house</text:a></text:p>"),
            Texts({"The{<text:span text:style-name=\"T1\">} red{</text:span>}{<text:a>} house{</text:a>}"}));
  EXPECT_EQ(parts_of("<text:p>Page <text:page-number>1</text:page-number>, see <text:bookmark/>here</text:p>"),
            Texts({"Page{<text:page-number>1</text:page-number>}, see{<text:bookmark/>} here"}));
  EXPECT_EQ(parts_of("<text:p><text:span>All of it</text:span></text:p>"), Texts({"All of it"}));
}

TEST(OpenDocument, SpacesAndLineBreaksInMarkupAreWhiteSpace) {
  EXPECT_EQ(parts_of("<text:p>One.<text:s/>Two <text:s text:c=\"2\"/>\n three</text:p>"),
            Texts({"One.{<text:s/>} Two{<text:s text:c=\"2\"/>} three"}));
  EXPECT_EQ(parts_of("<text:p>One<text:line-break/>two.<text:line-break/>Three<text:line-break/>"
                     "<text:line-break/>four</text:p>"),
            Texts({"One{<text:line-break/>} two.", "Three", "four"}));
  EXPECT_EQ(parts_of("<text:p>Chapter<text:tab/>12 pages</text:p>"), Texts({"Chapter", "12 pages"}));
  EXPECT_EQ(translated("<text:p>One.<text:s/>Two</text:p>", {translation({"▁One.", "▁Two"}, {"▁A.", "▁B"}, {0, 1})}),
            "<text:p>A.<text:s/>B</text:p>");
}

TEST(OpenDocument, FootnotesWithinASentenceAreTagsWithPartsOfTheirOwn) {
  const std::string before = "<text:p>The <text:span>red</text:span>",
                    note = "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>",
                    after = "</text:p></text:note-body></text:note>";
  const std::string body = before + note + "A note." + after + " house.</text:p>";
  EXPECT_EQ(parts_of(body),
            Texts({"The{<text:span>} red{</text:span>}{" + note + "A note." + after + "} house.", "A note."}));
  const Translation house = translation({"▁The", "▁red", "▁house", "."}, {"▁Das", "▁rote", "▁Haus", "."}, {0, 1, 2, 3});
  const Translation same = translation({"▁The", "▁red", "▁house", "."}, {"▁The", "▁red", "▁house", "."}, {});
  const Translation text = translation({"▁A", "▁note", "."}, {"▁Una", "▁nota", "&", "."}, {0, 1, -1, 2});
  const Translation same_note = translation({"▁A", "▁note", "."}, {"▁A", "▁note", "."}, {});
  EXPECT_EQ(translated(body, {house, text}),
            "<text:p>Das <text:span>rote</text:span>" + note + "Una nota&amp;." + after + " Haus.</text:p>");
  EXPECT_EQ(translated(body, {same, text}), before + note + "Una nota&amp;." + after + " house.</text:p>");
  EXPECT_EQ(translated(body, {house, same_note}),
            "<text:p>Das <text:span>rote</text:span>" + note + "A note." + after + " Haus.</text:p>");
  EXPECT_EQ(translated(body, {same, same_note}), body);
}

TEST(OpenDocument, FramesAndCommentsHavePartsOfTheirOwn) {
  EXPECT_EQ(parts_of("<text:p><draw:frame><draw:text-box><text:p>Caption</text:p></draw:text-box></draw:frame>Text"
                     "</text:p>"),
            Texts({"Caption", "Text"}));
  EXPECT_EQ(parts_of("<text:p>One <office:annotation><text:p>Why?</text:p></office:annotation>two</text:p>"),
            Texts({"One{<office:annotation><text:p>Why?</text:p></office:annotation>} two", "Why?"}));
}

// Paragraphs within each other are copied once for each level: deeper ones split the text around them.
TEST(OpenDocument, DeepFramesSplitTheTextAroundThem) {
  std::string body;
  for (int i = 0; i < 100; i++) body = "<text:p>a <draw:frame>" + body + "</draw:frame> b</text:p>";
  const SplitText document = split_open_document(content(body));
  ASSERT_EQ(document.parts.size(), 3u + 2u * 97u);
  EXPECT_EQ(document.parts[0].text, "a b");
  EXPECT_EQ(document.parts[3].text, "a");
  Texts same;
  for (const TextPart& part : document.parts) same.emplace_back(document.bytes_of(part));
  EXPECT_EQ(join(document, same), document.bytes);
}

TEST(OpenDocument, DeletedTextCodeAndCalculatedCellsStay) {
  EXPECT_EQ(parts_of("<text:tracked-changes><text:p>Gone</text:p></text:tracked-changes><text:p>Here</text:p>"),
            Texts({"Here"}));
  const std::string cell = "<table:table-cell office:value-type=";
  EXPECT_EQ(parts_of(cell +
                     "\"float\"><office:annotation><text:p>Note</text:p></office:annotation><text:p>12 kg"
                     "</text:p></table:table-cell>" +
                     cell +
                     "\"string\" table:formula=\"of:=A1\" office:string-value=\"x\"><text:p>x</text:p>"
                     "</table:table-cell>" +
                     cell + "\"string\"><text:p>Text</text:p></table:table-cell>"),
            Texts({"Note", "Text"}));
  const std::string styles =
      "<style:style style:name=\"P9\" style:family=\"paragraph\" "
      "style:parent-style-name=\"Preformatted_20_Text\"/>";
  const std::string code = "<text:p text:style-name=\"P9\">int i;</text:p>";
  EXPECT_EQ(
      parts_of(code + "<text:p>Call <text:span text:style-name=\"Source_20_Text\">f</text:span>.</text:p>", styles),
      Texts({"Call{<text:span text:style-name=\"Source_20_Text\">f</text:span>}."}));
  EXPECT_EQ(parts_of(code, styles), Texts({"int i;"}));  // a text file that was opened by an office program
}

TEST(OpenDocument, SpansThatHoldRevisionsAreLeftOut) {
  const auto style = [](const char* name, const char* property) {
    return std::string("<style:style style:name=\"") + name + "\" style:family=\"text\"><style:text-properties " +
           property + "/></style:style>";
  };
  const std::string styles = style("T1", "officeooo:rsid=\"001\"") + style("T2", "officeooo:rsid=\"002\"") +
                             style("T3", "style:font-name=\"x\" officeooo:rsid=\"002\"");
  const std::string body =
      "<text:p>Hel<text:span text:style-name=\"T1\">lo <text:span text:style-name=\"T3\">big"
      "</text:span></text:span><text:span text:style-name=\"T2\"> wor</text:span>ld</text:p>";
  EXPECT_EQ(parts_of(body, styles), Texts({"Hello{<text:span text:style-name=\"T3\">} big{</text:span>} world"}));
  const SplitText document = split_open_document(content(body, styles));
  EXPECT_EQ(restore_markup(document, document.parts.at(0),
                           translation({"▁Hello", "▁big", "▁world"}, {"▁Hola", "▁mundo", "▁grande"}, {0, 2, 1})),
            "Hola mundo <text:span text:style-name=\"T3\">grande</text:span>");
  // A part that ends within such a span keeps its tags.
  EXPECT_EQ(parts_of("<text:p>A<text:span text:style-name=\"T1\">b c<text:tab/>d</text:span>e f</text:p>", styles),
            Texts({"A{<text:span text:style-name=\"T1\">}b c", "d{</text:span>}e f"}));
}

TEST(OpenDocument, TheValueOfACellIsTranslatedAsItsText) {
  const std::string cell = "<table:table-cell table:style-name=\"a>b\" office:string-value = '", middle = "'><text:p>",
                    after = "</text:p></table:table-cell>";
  const Translation red = translation({"▁red"}, {"▁l'", "a<b\""}, {0, 0});
  EXPECT_EQ(translated(cell + "red" + middle + "red" + after, {red, red}),
            cell + "l&apos;a&lt;b&quot;" + middle + "l'a&lt;b\"" + after);
}

TEST(OpenDocument, TextsOfHeadersAndChartsAreTranslatedAndOtherMembersStay) {
  const std::string xml = content("<text:p>Text</text:p>");
  const std::string archive = zip_of({{"mimetype", "application/vnd.oasis.opendocument.text"},
                                      {"Object 1/content.xml", xml},
                                      {"styles.xml", xml},
                                      {"meta.xml", "<text:p>Text</text:p>"},
                                      {"META-INF/manifest.xml", "<manifest/>"},
                                      {"content.xml", xml}});
  const Document document(*find_document_format("odp"), archive);
  EXPECT_EQ(document.part_texts(), Texts({"Text", "Text", "Text"}));
  EXPECT_EQ(document.replaced(Texts({"Text", "Text", "Text"})), archive);
  const std::string changed = document.replaced(Texts({"Chart", "Style", "Text"}));
  EXPECT_EQ(changed.substr(0, 77), archive.substr(0, 77));  // the mimetype stays first and stored
  Texts members;
  for (const ArchiveMember& member : read_members(
           changed, [](auto) { return true; }, uint64_t{1} << 20))
    members.push_back(member.name + ": " + member.bytes);
  const auto with = [&](const char* text) { return content(std::string("<text:p>") + text + "</text:p>"); };
  EXPECT_EQ(members,
            Texts({"mimetype: application/vnd.oasis.opendocument.text", "Object 1/content.xml: " + with("Chart"),
                   "styles.xml: " + with("Style"), "meta.xml: <text:p>Text</text:p>",
                   "META-INF/manifest.xml: <manifest/>", "content.xml: " + xml}));
}

TEST(OpenDocument, OtherFilesAreRefused) {
  EXPECT_EQ(odf_error({{"mimetype", "x"}}), "the archive has no text of the format odt");
  EXPECT_EQ(odf_error({{"mimetype", "x"}, {"META-INF/manifest.xml", "<manifest/>"}}, "ods"),
            "the archive has no text of the format ods");
  EXPECT_EQ(odf_error({{"content.xml", "\xFF\xFF"},
                      {"META-INF/manifest.xml", "<m><file-entry><encryption-data/></file-entry></m>"}}),
            "META-INF/manifest.xml: the document is encrypted; only documents without a password are translated");
  EXPECT_EQ(odf_error({{"content.xml", "\xFF\xFF"}}), "content.xml: the text must be UTF-8 (byte 1 is not)");
  EXPECT_EQ(odf_error({{"content.xml", "<a><b></a>"}}), "content.xml: line 1: not well-formed XML (mismatched tag)");
  EXPECT_EQ(odf_error({{"content.xml", "<a/>"}}), "none");
}

}  // namespace
}  // namespace qkv
