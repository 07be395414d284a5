#include <gtest/gtest.h>

#include "documents/document.h"
#include "qkv/error.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using testing::translation;
using testing::unchanged;

constexpr const char* kMachineState = " state=\"needs-review-translation\" state-qualifier=\"mt-suggestion\"";

Document xliff(const std::string& text, const DocumentOptions& options = {}) {
  return Document(*find_document_format("xliff"), text, options);
}

std::string version_1(const std::string& body) {
  return "<xliff version=\"1.2\" xmlns=\"urn:oasis:names:tc:xliff:document:1.2\"><file target-language=\"de\"><body>" +
         body + "</body></file></xliff>";
}

std::string version_2(const std::string& unit) {
  return "<xliff version=\"2.0\" trgLang=\"de\" xmlns=\"urn:oasis:names:tc:xliff:document:2.0\"><file><unit>" + unit +
         "</unit></file></xliff>";
}

// A unit of version 1 with what it gets after </source>.
std::string unit_1(const std::string& source, const std::string& after = "") {
  return version_1("<trans-unit><source>" + source + "</source>" + after + "</trans-unit>");
}

std::string target_1(const std::string& content) {
  return std::string("<target") + kMachineState + ">" + content + "</target>";
}

std::string segment_2(const std::string& source, const std::string& after = "") {
  return version_2("<segment><source>" + source + "</source>" + after + "</segment>");
}

// The document with every part translated by itself.
std::string copied_xliff(const Document& document) {
  std::vector<Translation> same;
  for (const std::string& text : document.part_texts()) same.push_back(unchanged(text));
  return document.translated(same);
}

std::string xliff_error(const std::string& text, const DocumentOptions& options = {}) {
  try {
    xliff(text, options);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

using XliffTexts = std::vector<std::string>;

TEST(Xliff, ATargetIsAddedBehindTheSourceOnALineLikeIts) {
  const Document document =
      xliff(version_1("\r\n\t<trans-unit>\r\n\t  <source>A &lt;dog&gt;</source>\r\n\t  <note>n</note>"
                      "\r\n\t</trans-unit>"));
  EXPECT_EQ(document.part_texts(), XliffTexts{"A <dog>"});
  const std::string expected = version_1(
      "\r\n\t<trans-unit>\r\n\t  <source>A &lt;dog&gt;</source>\r\n\t  <target state=\"needs-review-translation\" "
      "state-qualifier=\"mt-suggestion\">Ein &lt;Hund&gt; &amp; \uFFFD</target>\r\n\t  "
      "<note>n</note>\r\n\t</trans-unit>");
  EXPECT_EQ(document.translated(std::vector{translation({"▁A"}, {"▁Ein", "▁<Hund>", "▁&", "▁\x01"}, {})}), expected);
  EXPECT_EQ(copied_xliff(xliff(unit_1("a <g id='1'>b</g>"))),
            unit_1("a <g id='1'>b</g>", target_1("a <g id='1'>b</g>")));
}

TEST(Xliff, WhatIsTranslatedOrNotToBeTranslatedStays) {
  for (const std::string& text :
       {unit_1("Dog", "<target state=\"new\">Hund</target>"), unit_1("Dog", "<target><x id=\"1\"/></target>"),
        unit_1("Dog", "<target state=\"final\"/>"), unit_1("<x id=\"1\"/> -"),
        version_1("<trans-unit translate=\"no\"><source>a</source></trans-unit>"),
        version_1("<group translate=\"no\"><group><trans-unit><source>a</source></trans-unit></group></group>"),
        version_1("<trans-unit approved=\"yes\"><source>a</source></trans-unit>"),
        version_1("<trans-unit><alt-trans><source>a</source><target/></alt-trans></trans-unit>"),
        version_2("<segment state=\"final\"><source>a</source></segment>"),
        version_2("<ignorable><source>a</source></ignorable><notes><note>n</note></notes>"),
        segment_2("Dog", "<target>Hund</target>")}) {
    EXPECT_EQ(xliff(text).parts(), 0u) << text;
    EXPECT_EQ(copied_xliff(xliff(text)), text);
  }
  EXPECT_EQ(xliff(version_1("<group translate=\"no\"><trans-unit><source>a</source></trans-unit><trans-unit "
                            "translate=\"yes\"><source>b</source></trans-unit></group>"))
                .part_texts(),
            XliffTexts{"b"});
}

TEST(Xliff, AnEmptyTargetKeepsItsAttributesButTheState) {
  EXPECT_EQ(copied_xliff(xliff(unit_1("Dog", "<target xml:lang='de' state = \"new\" />"))),
            unit_1("Dog", std::string("<target xml:lang='de'") + kMachineState + ">Dog</target>"));
  EXPECT_EQ(copied_xliff(xliff(unit_1("Dog", "<target> </target>"))), unit_1("Dog", target_1("Dog")));
  EXPECT_EQ(copied_xliff(xliff(segment_2("Dog", "<target order=\"1\"/>"))),
            segment_2("Dog", "<target order=\"1\">Dog</target>"));
}

TEST(Xliff, InlineElementsFollowTheirWords) {
  const std::string source =
      "the <bpt id=\"1\">&lt;b&gt;</bpt>red<ept id=\"1\">&lt;/b&gt;</ept> <g id=\"2\">house</g><x id=\"3\"/>!";
  const Document document = xliff(unit_1(source));
  EXPECT_EQ(document.part_texts(), XliffTexts{"the red house!"});
  EXPECT_EQ(document.translated(std::vector{
                translation({"▁the", "▁red", "▁house", "!"}, {"▁la", "▁casa", "▁roja", "!"}, {0, 2, 1, 3})}),
            unit_1(source, target_1("la <g id=\"2\">casa</g> <bpt id=\"1\">&lt;b&gt;</bpt>roja"
                                    "<ept id=\"1\">&lt;/b&gt;</ept><x id=\"3\"/>!")));
}

TEST(Xliff, RangesThatCrossElementsKeepTheirOrder) {
  const std::string source = "a <g id=\"1\">b <bx id=\"2\" rid=\"x\"/>c</g> d<ex id=\"3\" rid=\"x\"/> e";
  EXPECT_EQ(xliff(unit_1(source))
                .translated(std::vector{
                    translation({"▁a", "▁b", "▁c", "▁d", "▁e"}, {"▁v", "▁w", "▁y", "▁x", "▁z"}, {0, 1, 3, 2, 4})}),
            unit_1(source, target_1("v <g id=\"1\">w <bx id=\"2\" rid=\"x\"/></g>y x<ex id=\"3\" rid=\"x\"/> z")));
}

TEST(Xliff, ProtectedTextStaysWithItsMark) {
  const std::string source =
      "See <mrk mtype=\"protected\">ACME Go</mrk> now, <mrk mtype=\"x-a\" i:translate=\"no\" "
      "xmlns:i=\"http://www.w3.org/2005/11/its\">it</mrk> is";
  EXPECT_EQ(xliff(unit_1(source)).part_texts(), XliffTexts{"See now, is"});
  EXPECT_EQ(xliff(segment_2("See <mrk id=\"1\" translate=\"no\">ACME</mrk> now <sm id=\"2\" translate=\"no\"/>Go "
                            "<pc id=\"3\">x</pc><em startRef=\"2\"/> today"))
                .part_texts(),
            XliffTexts{"See now today"});
}

TEST(Xliff, SegmentsOfAUnitAreTranslatedApart) {
  const std::string divided =
      "<seg-source><g id=\"1\"><mrk mtype=\"seg\" mid=\"1\">One.</mrk> <mrk mtype=\"seg\" mid=\"2\">-</mrk> "
      "<mrk mtype=\"seg\" mid=\"3\">Two.</mrk></g></seg-source>";
  const Document document = xliff(unit_1("One. - Two.", divided));
  EXPECT_EQ(document.part_texts(), (XliffTexts{"One.", "Two."}));
  EXPECT_EQ(
      document.translated(
          std::vector{translation({"▁One."}, {"▁Eins."}, {0}), translation({"▁Two."}, {"▁Zwei."}, {0})}),
      unit_1("One. - Two.",
             divided + target_1("<g id=\"1\"><mrk mtype=\"seg\" mid=\"1\">Eins.</mrk> <mrk mtype=\"seg\" mid=\"2\">-"
                                "</mrk> <mrk mtype=\"seg\" mid=\"3\">Zwei.</mrk></g>")));
}

TEST(Xliff, EmptySegmentsOfATargetAreFilled) {
  const std::string divided =
      "<seg-source><mrk mtype=\"seg\" mid=\"1\">One.</mrk> <mrk mtype=\"seg\" mid=\"2\">Two.</mrk></seg-source>";
  const auto target = [](const std::string& first) {
    return "<target>" + first + " <mrk mtype=\"seg\" mid=\"2\">Zwei.</mrk><mrk mtype=\"seg\" mid=\"1\"/></target>";
  };
  const Document document = xliff(unit_1("One. Two.", divided + target("<mrk mtype=\"seg\" mid=\"1\" />")));
  EXPECT_EQ(document.translated(std::vector{translation({"▁One."}, {"▁Eins."}, {0})}),
            unit_1("One. Two.", divided + target("<mrk mtype=\"seg\" mid=\"1\">Eins.</mrk>")));
}

TEST(Xliff, WhiteSpaceStaysWhereItIsPreserved) {
  const std::string text = "  two\r\n  <g id=\"1\">dogs</g>  run\n";
  EXPECT_EQ(xliff(unit_1(text)).part_texts(), XliffTexts{"two dogs run"});
  const Document document = xliff("<xliff version=\"1.2\" xml:space=\"preserve\"><trans-unit><source>" + text +
                                  "</source></trans-unit></xliff>");
  EXPECT_EQ(document.part_texts(), XliffTexts{"two\n  dogs  run"});
  Translation lines = translation({"▁two", "▁dogs", "▁run"}, {"▁zwei", "▁Hunde", "▁los"}, {0, 1, 2});
  lines.hypotheses[0].text = "zwei\nHunde los";
  EXPECT_NE(document.translated(std::vector{lines}).find(target_1("  zwei\n<g id=\"1\">Hunde</g> los\n")),
            std::string::npos);
  EXPECT_EQ(copied_xliff(xliff(version_1("<trans-unit><source xml:space=\"preserve\">a  b</source></trans-unit>"))),
            version_1("<trans-unit><source xml:space=\"preserve\">a  b</source><target xml:space=\"preserve\"" +
                      std::string(kMachineState) + ">a  b</target></trans-unit>"));
}

TEST(Xliff, CdataSectionsAreText) {
  const std::string source = "<![CDATA[ <b>R&D]]> now";
  const Document document = xliff(unit_1(source));
  EXPECT_EQ(document.part_texts(), XliffTexts{"<b>R&D now"});
  EXPECT_EQ(copied_xliff(document), unit_1(source, target_1(source)));
  EXPECT_EQ(document.translated(std::vector{translation({"▁R&D"}, {"▁<b>F&E"}, {})}),
            unit_1(source, target_1("&lt;b&gt;F&amp;E")));
}

TEST(Xliff, Version2HasItsInlineElements) {
  const std::string source = "the <pc id=\"1\">red</pc> <sc id=\"2\"/>house<ec startRef=\"2\"/> <ph id=\"3\"/>";
  EXPECT_EQ(
      xliff(segment_2(source))
          .translated(std::vector{translation({"▁the", "▁red", "▁house"}, {"▁la", "▁casa", "▁roja"}, {0, 2, 1})}),
      segment_2(source,
                "<target>la <sc id=\"2\"/>casa<ec startRef=\"2\"/> <pc id=\"1\">roja</pc> <ph id=\"3\"/></target>"));
  const std::string fixed =
      "the <pc id=\"1\" canReorder=\"firstNo\">red</pc> <pc id=\"2\" canReorder=\"no\">house</pc> is";
  EXPECT_EQ(xliff(segment_2(fixed))
                .translated(std::vector{
                    translation({"▁the", "▁red", "▁house", "▁is"}, {"▁la", "▁casa", "▁roja", "▁es"}, {0, 2, 1, 3})}),
            segment_2(fixed,
                      "<target>la <pc id=\"1\" canReorder=\"firstNo\"></pc><pc id=\"2\" "
                      "canReorder=\"no\">casa roja</pc> es</target>"));
}

TEST(Xliff, TheTargetHasThePrefixesOfTheSource) {
  const std::string begin =
                        "<a:xliff version=\"2.1\" trgLang=\"de\" xmlns:a=\"urn:x\"><a:segment><a:source "
                        "xmlns:b='urn:x'>A <b:pc id='1'>b"
                        "</b:pc></a:source>",
                    end = "</a:segment></a:xliff>";
  EXPECT_EQ(copied_xliff(xliff(begin + end)),
            begin + "<a:target xmlns:b='urn:x'>A <b:pc id='1'>b</b:pc></a:target>" + end);
}

TEST(Xliff, TheTargetLanguageIsNamedWhereTranslationsNeedIt) {
  const DocumentOptions options = {.target_language = "pt-BR"};
  const std::string unit = "<trans-unit><source>a</source></trans-unit>";
  const std::string text = "<xliff version=\"1.0\"><file a='>'>" + unit + "</file><file target-language=\"pt\">" +
                           unit + "</file><file/></xliff>";
  const std::string done = "<trans-unit><source>a</source><target>a</target></trans-unit>";
  EXPECT_EQ(copied_xliff(xliff(text, options)), "<xliff version=\"1.0\"><file a='>' target-language=\"pt-BR\">" + done +
                                                    "</file><file target-language=\"pt\">" + done +
                                                    "</file><file/></xliff>");
  EXPECT_EQ(copied_xliff(xliff(text)).find("pt-BR"), std::string::npos);
  const std::string second = "<xliff version=\"2.0\"><segment><source>a</source></segment></xliff>";
  EXPECT_EQ(copied_xliff(xliff(second, options)),
            "<xliff version=\"2.0\" trgLang=\"pt-BR\"><segment><source>a</source>"
            "<target>a</target></segment></xliff>");
  EXPECT_EQ(xliff_error(second),
            "the file has no target language (trgLang): target_language must name one, such as de");
  EXPECT_EQ(xliff_error(second, {.target_language = "a\"b"}),
            "target_language \"a\"b\": must be a language tag such as de or pt-BR");
}

TEST(Xliff, OtherFilesAreRefused) {
  EXPECT_EQ(xliff_error("<html/>"), "the root element must be <xliff> (found <html>)");
  EXPECT_EQ(xliff_error("<xliff version=\"3.0\"/>"),
            "XLIFF must have version 1.0 to 1.2 or 2.0 to 2.2 (found \"3.0\")");
  EXPECT_EQ(xliff_error("<xliff/>"), "XLIFF must have version 1.0 to 1.2 or 2.0 to 2.2 (found \"\")");
  EXPECT_EQ(xliff_error("<xliff>"), "line 1: not well-formed XML (no element found)");
  EXPECT_EQ(xliff_error("<?xml version='1.0' encoding='iso-8859-1'?>\n<xliff version='1.2'/>"),
            "line 1: declares the encoding ISO-8859-1 (must be UTF-8 or UTF-16)");
}

}  // namespace
}  // namespace qkv
