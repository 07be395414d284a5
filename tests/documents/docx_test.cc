#include <gtest/gtest.h>

#include <map>
#include <random>

#include "documents/xml_tokens.h"
#include "qkv/error.h"
#include "tests/documents/archives.h"
#include "tests/documents/office_texts.h"

namespace qkv {
namespace {

using testing::translation;

const testing::OfficeMember kWord = {
    "docx", "word/document.xml",
    "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\" "
    "xmlns:m=\"http://schemas.openxmlformats.org/officeDocument/2006/math\" xmlns:r=\"r\"><w:body>",
    "</w:body></w:document>"};

std::string word_run(const std::string& text, const std::string& properties = "") {
  return "<w:r>" + (properties.empty() ? "" : "<w:rPr>" + properties + "</w:rPr>") + "<w:t xml:space=\"preserve\">" +
         text + "</w:t></w:r>";
}

std::string word_paragraph(const std::string& content) { return "<w:p>" + content + "</w:p>"; }

std::string word_field(const std::string& type) { return "<w:r><w:fldChar w:fldCharType=\"" + type + "\"/></w:r>"; }

TEST(Docx, RunsWithTheSamePropertiesAreOneText) {
  const std::string split =
      "<w:r w:rsidR=\"1\"><w:t>the </w:t></w:r><w:proofErr w:type=\"spellStart\"/><w:r><w:rPr><w:lang w:val=\"en\"/>"
      "<w:noProof/></w:rPr><w:lastRenderedPageBreak/><w:t xml:space=\"preserve\"> red</w:t></w:r>" +
      word_run(" house");
  EXPECT_EQ(kWord.parts(word_paragraph(split)), "[the red house]");
  EXPECT_EQ(kWord.translated(word_paragraph(split), testing::red_house()),
            "<w:p><w:r w:rsidR=\"1\"><w:t xml:space=\"preserve\">la casa roja</w:t></w:r></w:p>");
}

TEST(Docx, OtherPropertiesAreAnElement) {
  EXPECT_EQ(kWord.parts(word_paragraph(word_run("the ") + word_run("red", "<w:b/>") + word_run(" house"))),
            "[the{ red} house]");
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("the ") + word_run("red", "<w:b/>") + word_run(" house")),
                             testing::red_house()),
            word_paragraph(word_run("la casa ") + word_run("roja", "<w:b/>")));
  EXPECT_EQ(
      kWord.translated(word_paragraph(word_run("the ") + word_run("red ", "<w:b/>") + word_run("house", "<w:i/>")),
                       testing::red_house()),
      word_paragraph(word_run("la") + word_run(" casa ", "<w:i/>") + word_run("roja", "<w:b/>")))
      << "the run with the most text is that of the paragraph";
}

TEST(Docx, ASpaceWithOtherPropertiesIsNoElement) {
  EXPECT_EQ(kWord.parts(word_paragraph(word_run("the") + word_run(" ", "<w:b/>") + word_run("red house"))),
            "[the red house]");
}

TEST(Docx, WhiteSpaceAtTheEndsOfTheTextStays) {
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("  the ") + word_run("red house \u00A0", "<w:b/>")),
                             testing::red_house()),
            word_paragraph(word_run("  ") + word_run("la") + word_run(" casa roja", "<w:b/>") +
                           word_run(" \u00A0", "<w:b/>")));
}

TEST(Docx, TextWithoutAMarkHasNoWhiteSpaceAtItsEnds) {
  EXPECT_EQ(kWord.parts(word_paragraph("<w:r><w:t> the red </w:t></w:r>" + word_run("house"))), "[the redhouse]");
  EXPECT_EQ(kWord.parts(word_paragraph("<w:r><w:t/></w:r><w:r><w:t></w:t></w:r>" + word_run("house"))), "[house]");
}

TEST(Docx, HyperlinksEncloseTheirRuns) {
  const std::string link = "<w:hyperlink r:id=\"1\">";
  EXPECT_EQ(kWord.parts(word_paragraph(word_run("the ") + link + word_run("red", "<w:u/>") + "</w:hyperlink>" +
                                       word_run(" house"))),
            "[the{ red} house]");
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("the ") + link + word_run("red", "<w:u/>") + "</w:hyperlink>" +
                                            word_run(" house")),
                             testing::red_house()),
            word_paragraph(word_run("la casa ") + link + word_run("roja", "<w:u/>") + "</w:hyperlink>"));
  EXPECT_EQ(kWord.translated(
                word_paragraph(link + word_run("the red", "<w:u/>") + word_run(" house", "<w:b/>") + "</w:hyperlink>"),
                testing::red_house()),
            word_paragraph(link + word_run("la ", "<w:u/>") + word_run("casa", "<w:b/>") + word_run(" roja", "<w:u/>") +
                           "</w:hyperlink>"));
}

TEST(Docx, ContentControlsAndInsertionsKeepTheirMarkup) {
  const std::string control = "<w:sdt><w:sdtPr><w:id w:val=\"1\"/></w:sdtPr><w:sdtContent>",
                    end = "</w:sdtContent></w:sdt>";
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("the ") + control + word_run("red") + end + word_run(" house")),
                             testing::red_house()),
            word_paragraph(word_run("la casa ") + control + word_run("roja") + end));
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("the") + "<w:ins w:id=\"1\">" + word_run(" ") + "</w:ins>" +
                                            word_run("red house")),
                             testing::red_house()),
            word_paragraph(word_run("la casa roja")));
  const std::string deleted = "<w:del w:id=\"1\"><w:r><w:delText>old</w:delText></w:r></w:del>";
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("the ") + deleted + word_run(" red house")), testing::red_house()),
            word_paragraph(word_run("la ") + deleted + word_run(" casa roja")));
}

TEST(Docx, OtherContentOfRunsIsInARunOfItsOwn) {
  const std::string note = "<w:footnoteReference w:id=\"2\"/>";
  EXPECT_EQ(kWord.translated(word_paragraph("<w:r><w:rPr><w:i/></w:rPr><w:t>the red</w:t>" + note +
                                            "<w:t xml:space=\"preserve\"> house</w:t></w:r>"),
                             translation({"▁the", "▁red", "▁house"}, {"▁das", "▁rote", "▁Haus"}, {0, 1, 2})),
            word_paragraph(word_run("das rote", "<w:i/>") + "<w:r><w:rPr><w:i/></w:rPr>" + note + "</w:r>" +
                           word_run(" Haus", "<w:i/>")));
  EXPECT_EQ(kWord.parts(word_paragraph(word_run("x ") + "<m:oMath><m:r><m:t>y</m:t></m:r></m:oMath>" + word_run(" z"))),
            "[x| z]");
}

TEST(Docx, TabsAndPageBreaksEndPartsWithinARun) {
  const std::string tabbed = "<w:r><w:rPr><w:b/></w:rPr><w:t>one</w:t><w:tab/><w:t>two</w:t></w:r>";
  EXPECT_EQ(kWord.parts(word_paragraph(tabbed)), "[one][two]");
  const SplitText document = kWord.split(word_paragraph(tabbed));
  const std::vector<std::string> put = {
      restore_markup(document, document.parts[0], translation({"▁one"}, {"▁eins"}, {0})),
      restore_markup(document, document.parts[1], translation({"▁two"}, {"▁zwei"}, {0}))};
  EXPECT_EQ(join(document, put),
            kWord.before +
                word_paragraph(word_run("eins", "<w:b/>") + "<w:r><w:rPr><w:b/></w:rPr><w:tab/></w:r>" +
                               word_run("zwei", "<w:b/>")) +
                kWord.after);
  EXPECT_EQ(kWord.parts(word_paragraph("<w:r><w:t>a</w:t><w:br w:type=\"page\"/><w:t>b\tc</w:t></w:r>")), "[a][b][c]");
}

TEST(Docx, LineBreaksStayInTheSentence) {
  EXPECT_EQ(
      kWord.parts(word_paragraph("<w:r><w:t>the red</w:t><w:br/><w:t>house. </w:t><w:br/><w:t>A dog</w:t></w:r>")),
      "[the red| house.][A dog]");
}

TEST(Docx, NoBreakHyphensAreHyphens) {
  const std::string word =
      word_paragraph("<w:r><w:t>well</w:t><w:noBreakHyphen/><w:t>kn</w:t><w:softHyphen/><w:t>own</w:t></w:r>");
  EXPECT_EQ(kWord.parts(word), "[well-known]");
  EXPECT_EQ(kWord.translated(word, translation({"▁well", "-", "known"}, {"▁bekannt"}, {2})),
            word_paragraph("<w:r><w:t xml:space=\"preserve\">bekannt</w:t></w:r>"));
}

TEST(Docx, FieldsStayButForHyperlinks) {
  const std::string page = word_field("begin") + "<w:r><w:instrText>PAGE</w:instrText></w:r>" + word_field("separate") +
                           word_run("7") + word_field("end");
  EXPECT_EQ(kWord.parts(word_paragraph(word_run("page ") + page + word_run(" of it"))), "[page| of it]");
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("the ") + page + word_run(" red house")), testing::red_house()),
            word_paragraph(word_run("la ") + page + word_run(" casa roja")));
  const std::string link = word_field("begin") + "<w:r><w:instrText> HYPER</w:instrText></w:r>" +
                           "<w:r><w:instrText>LINK \"x\"</w:instrText></w:r>" + word_field("separate");
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("the ") + link + word_run("red", "<w:u/>") + word_field("end") +
                                            word_run(" house")),
                             testing::red_house()),
            word_paragraph(word_run("la casa ") + link + word_run("roja", "<w:u/>") + word_field("end")));
}

TEST(Docx, FieldsOfSeveralParagraphsEndParts) {
  EXPECT_EQ(kWord.parts(word_paragraph(word_run("before") + word_field("begin") +
                                       "<w:r><w:instrText>TOC</w:instrText></w:r>" + word_field("separate") +
                                       word_run("first")) +
                        word_paragraph(word_run("second") + word_field("end") + word_run("after"))),
            "[before][first][second][after]");
}

TEST(Docx, FieldsWithinARunKeepItsProperties) {
  EXPECT_EQ(kWord.translated(word_paragraph("<w:r><w:rPr><w:b/></w:rPr><w:t xml:space=\"preserve\">the </w:t>"
                                            "<w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:t>1</w:t></w:r>"
                                            "<w:r><w:fldChar w:fldCharType=\"end\"/>"
                                            "<w:t xml:space=\"preserve\"> red house</w:t></w:r>"),
                             testing::red_house()),
            word_paragraph(word_run("la", "<w:b/>") + word_run(" ") +
                           "<w:r><w:rPr><w:b/></w:rPr><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:t>1</w:t></w:r>"
                           "<w:r><w:fldChar w:fldCharType=\"end\"/></w:r>" +
                           word_run(" casa roja")));
}

TEST(Docx, TextBoxesArePartsOfTheirOwn) {
  EXPECT_EQ(kWord.parts(word_paragraph(word_run("before ") + "<w:r><w:pict><w:txbxContent>" +
                                       word_paragraph(word_run("inside")) + "</w:txbxContent></w:pict></w:r>" +
                                       word_run(" behind"))),
            "[before][inside][behind]");
}

TEST(Docx, TextWithoutLettersStays) {
  EXPECT_EQ(kWord.parts(word_paragraph(word_run("12.5 %")) + word_paragraph("") + "<w:p/>" +
                        word_paragraph(word_run(" \u2013 "))),
            "");
}

TEST(Docx, TheStrictNamespaceAndOtherPrefixesAreRead) {
  const testing::OfficeMember strict = {"docx", "word/footnotes.xml",
                                        "<x:notes xmlns:x=\"http://purl.oclc.org/ooxml/wordprocessingml/main\">",
                                        "</x:notes>"};
  EXPECT_EQ(strict.translated("<x:p><x:r><x:t>the red house</x:t></x:r></x:p>", testing::red_house()),
            "<x:p><x:r><x:t xml:space=\"preserve\">la casa roja</x:t></x:r></x:p>");
  EXPECT_EQ(strict.parts("<p xmlns=\"y/wordprocessingml/z\"><r><t>the red house</t></r></p>"), "");
}

TEST(Docx, SpecialCharactersAreEscaped) {
  EXPECT_EQ(kWord.translated(word_paragraph(word_run("a &lt; &#98;")),
                             translation({"▁a", "▁<", "▁b"}, {"▁x&\x01", "▁<"}, {0, 1})),
            word_paragraph(word_run("x&amp;\uFFFD &lt;")));
}

TEST(Docx, MembersWithTextAreRead) {
  const auto* format = find_document_format("docx");
  for (const char* name : {"word/document.xml", "word/header1.xml", "word/footer12.xml", "word/endnotes.xml",
                           "word/comments.xml", "word/diagrams/data1.xml"})
    EXPECT_NE(format->split_member(name), nullptr) << name;
  for (const char* name : {"word/styles.xml", "word/documents.xml", "document.xml", "word/document.xml.rels",
                           "word/commentsExtended.xml", "docProps/core.xml"})
    EXPECT_EQ(format->split_member(name), nullptr) << name;
}

TEST(Docx, AnArchiveIsTranslatedMemberByMember) {
  const std::string text = kWord.before + word_paragraph(word_run("the red house")) + kWord.after;
  std::string other;  // large enough that libzip keeps it in place
  std::minstd_rand random(1);
  while (other.size() < 20'000) other += static_cast<char>(random());
  const std::string archive =
      testing::zip_of({{"a.bin", other}, {"word/styles.xml", "<x/>"}, {"word/document.xml", text}});
  const Document document(*format_of_file("x.DOCM"), archive);
  EXPECT_EQ(document.part_texts(), std::vector<std::string>{"the red house"});
  Translation same;
  same.hypotheses.resize(1);
  same.hypotheses[0].text = "the red house";
  EXPECT_EQ(document.translated(std::vector{same}), archive);
  const Document other_language(*find_document_format("docx"), document.translated(std::vector{testing::red_house()}));
  EXPECT_EQ(other_language.part_texts(), std::vector<std::string>{"la casa roja"});
}

TEST(Docx, DamagedDocumentsAreRefused) {
  const auto error = [](const std::string& bytes) -> std::string {
    try {
      const Document document(*find_document_format("docx"), bytes);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error("text"), "the archive is damaged: Not a zip archive");
  EXPECT_EQ(error(testing::zip_of({{"a", "b"}})), "the archive has no text of the format docx");
  EXPECT_EQ(error(testing::zip_of({{"word/document.xml", "<a>\n<b></a>"}})),
            "word/document.xml: line 2: not well-formed XML (mismatched tag)");
}

// Any markup gives well-formed documents, in which the other elements are still there.
TEST(Docx, MarkupIsNeverLostOrBroken) {
  const std::vector<std::string> properties = {"", "<w:b/>", "<w:i/>"};
  const std::vector<std::string> opens = {"<w:hyperlink r:id=\"1\">", "<w:ins w:id=\"1\">",
                                          "<w:sdt><w:sdtPr/><w:sdtContent>"};
  const std::vector<std::string> closes = {"</w:hyperlink>", "</w:ins>", "</w:sdtContent></w:sdt>"};
  const std::vector<std::string> contents = {"<w:t>word. </w:t>",
                                             "<w:t xml:space=\"preserve\"> a b </w:t>",
                                             "<w:t/>",
                                             "<w:t>x<!-- c -->y</w:t>",
                                             "<w:t><![CDATA[ q ]]></w:t>",
                                             "<w:tab/>",
                                             "<w:br/>",
                                             "<w:noBreakHyphen/>",
                                             "<w:drawing/>",
                                             "<w:t>t\tt</w:t>",
                                             "<w:pict><w:p><w:r><w:t>box</w:t></w:r></w:p></w:pict>",
                                             "<w:fldChar w:fldCharType=\"begin\"/>",
                                             "<w:instrText>HYPERLINK</w:instrText>",
                                             "<w:fldChar w:fldCharType=\"separate\"/>",
                                             "<w:fldChar w:fldCharType=\"end\"/>",
                                             "<w:lastRenderedPageBreak/>"};
  std::minstd_rand random(5);
  const auto any = [&](const auto& of) { return of[random() % of.size()]; };
  const auto count = [](const std::string& xml) {
    std::map<std::string, size_t> counts;
    for (const XmlToken& token : read_xml(xml).tokens) {
      const std::string name(token.local());
      const bool may_change = name == "r" || name == "t" || name == "rPr" || name == "b" || name == "i" ||
                              name == "noBreakHyphen" || name == "lastRenderedPageBreak" || name == "ins" ||
                              name == "hyperlink" || name.starts_with("sdt");
      if (token.kind == XmlToken::Kind::start && !may_change) counts[name]++;
    }
    return counts;
  };
  for (int round = 0; round < 2000; round++) {
    std::string body;
    std::vector<size_t> open;
    for (int i = 0; i < 10; i++) {
      if (random() % 4 == 0) open.push_back(random() % opens.size()), body += opens[open.back()];
      body += "<w:r>" + (random() % 2 ? "<w:rPr>" + any(properties) + "</w:rPr>" : "");
      for (size_t k = random() % 4; k > 0; k--) body += any(contents);
      body += "</w:r>";
      if (random() % 4 == 0) body += "<w:bookmarkStart/>";
      if (random() % 3 == 0 && !open.empty()) body += closes[open.back()], open.pop_back();
    }
    for (; !open.empty(); open.pop_back()) body += closes[open.back()];
    const SplitText document = kWord.split(word_paragraph(body));
    std::vector<std::string> same, other;
    for (const TextPart& part : document.parts) {
      std::vector<std::string> source, target;
      for (size_t i = 0; i < 6; i++) source.push_back("▁w"), target.push_back("▁" + std::to_string(i));
      Translation translated = translation(source, target, {5, 0, 4, 1, 2, 3});
      other.push_back(random() % 4 ? restore_markup(document, part, translated) : std::string(document.bytes_of(part)));
      translated.hypotheses[0].text = part.text;
      same.push_back(restore_markup(document, part, translated));
    }
    ASSERT_EQ(join(document, same), document.bytes);
    const std::string put = join(document, other);
    ASSERT_EQ(count(put), count(document.bytes)) << document.bytes << "\n" << put;
  }
}

}  // namespace
}  // namespace qkv
