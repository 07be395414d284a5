#include <gtest/gtest.h>

#include "tests/documents/archives.h"
#include "tests/documents/office_texts.h"

namespace qkv {
namespace {

using testing::translation;

const testing::OfficeMember kStrings = {"xlsx", "xl/sharedStrings.xml",
                                        "<sst xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">",
                                        "</sst>"};

TEST(Xlsx, TextOfCellsIsTranslatedAndNumbersStay) {
  EXPECT_EQ(kStrings.parts("<si><t>one &amp; two</t></si><si><t>2024</t></si><si><t/></si><si><t>three</t></si>"),
            "[one & two][three]");
  EXPECT_EQ(kStrings.translated("<si><t xml:space=\"preserve\"> the red house </t></si>", testing::red_house()),
            "<si><t xml:space=\"preserve\"> la casa roja </t></si>");
}

TEST(Xlsx, FormattedTextIsInRuns) {
  const std::string bold = "<r><rPr><b/></rPr><t xml:space=\"preserve\">", plain = "<r><t xml:space=\"preserve\">";
  const std::string sound = "<rPh sb=\"0\" eb=\"1\"><t>ka</t></rPh><phoneticPr fontId=\"1\"/>";
  EXPECT_EQ(
      kStrings.translated("<si><r><t>the</t></r>" + bold + " red</t></r>" + plain + " house</t></r>" + sound + "</si>",
                          testing::red_house()),
      "<si>" + plain + "la casa </t></r>" + bold + "roja</t></r>" + sound + "</si>");
}

TEST(Xlsx, LinesOfACellStay) {
  EXPECT_EQ(kStrings.parts("<si><t>Who\nis it?\nMe.&#10;\ta b</t></si>"), "[Who| is it?][Me.][a b]");
  EXPECT_EQ(kStrings.translated("<si><t>the\nred house</t></si>", testing::red_house()),
            "<si><t>la\ncasa roja</t></si>");
  EXPECT_EQ(kStrings.translated("<si><r><t>the&#10;red house</t></r></si>", testing::red_house()),
            "<si><r><t xml:space=\"preserve\">la</t></r><r><t xml:space=\"preserve\">&#10;</t></r>"
            "<r><t xml:space=\"preserve\">casa roja</t></r></si>");
}

TEST(Xlsx, EscapesOfExcelAreCharacters) {
  const std::string cell = "<si><t>the_x000D_\nred_x005F_x0041_ h\u00F6use _x00e9_ _xD800_ _x0_</t></si>";
  EXPECT_EQ(kStrings.parts(cell), "[the| red_x0041_ h\u00F6use \u00E9 _xD800_ _x0_]");
  EXPECT_EQ(kStrings.translated("<si><t>a</t></si>", translation({"▁a"}, {"▁_x0041_&_x_x0042_"}, {0})),
            "<si><t>_x005F_x0041_&amp;_x_x005F_x0042_</t></si>");
}

TEST(Xlsx, TextInSheetsAndCommentsIsTranslated) {
  const std::string space = " xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">";
  const testing::OfficeMember sheet = {"xlsx", "xl/worksheets/sheet3.xml", "<worksheet" + space, "</worksheet>"};
  EXPECT_EQ(sheet.translated("<c t=\"inlineStr\"><is><t>the red house</t></is></c><c t=\"str\"><f>A1</f><v>x</v></c>",
                             testing::red_house()),
            "<c t=\"inlineStr\"><is><t>la casa roja</t></is></c><c t=\"str\"><f>A1</f><v>x</v></c>");
  const testing::OfficeMember comments = {"xlsx", "xl/comments1.xml", "<comments" + space, "</comments>"};
  EXPECT_EQ(comments.parts("<authors><author>Me</author></authors><comment><text><r><t>Why?</t></r></text></comment>"),
            "[Why?]");
}

TEST(Xlsx, HeadersOfTablesStay) {
  const std::string space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
  const std::string archive = testing::zip_of(
      {{"[Content_Types].xml", "<x/>"},
       {"xl/sharedStrings.xml",
        kStrings.before + "<si><t>Fruit &amp;\nname.</t></si><si><t>Fruit</t></si><si><r><t>No. </t></r><r><t>of " +
            "them</t></r><rPh><t>x</t></rPh></si><si><t>Year</t></si>" + kStrings.after},
       {"xl/tables/table1.xml",
        "<table xmlns=\"" + space +
            "\"><tableColumn name=\"Fruit &amp;_x000a_name.\"/><tableColumn name=\"Size\"/></table>"},
       {"xl/pivotCache/pivotCacheDefinition1.xml",
        "<d xmlns=\"" + space + "\"><cacheField name=\"No.of them\"/><cacheField name=\"Year\"/></d>"}});
  const Document document(*find_document_format("xlsx"), archive);
  EXPECT_EQ(document.part_texts(), std::vector<std::string>{"Fruit"});
}

TEST(Xlsx, TextOfDrawingsIsTranslated) {
  const testing::OfficeMember drawing = {"xlsx", "xl/drawings/drawing1.xml",
                                         "<d xmlns:a=\"http://purl.oclc.org/ooxml/drawingml/main\">", "</d>"};
  EXPECT_EQ(drawing.translated("<a:p><a:r><a:t>the red house</a:t></a:r></a:p>", testing::red_house()),
            "<a:p><a:r><a:t>la casa roja</a:t></a:r></a:p>");
}

}  // namespace
}  // namespace qkv
