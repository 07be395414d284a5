#include <gtest/gtest.h>

#include "tests/documents/office_texts.h"

namespace qkv {
namespace {

using testing::translation;

const testing::OfficeMember kSlide = {
    "pptx", "ppt/slides/slide1.xml",
    "<p:sld xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\" xmlns:p=\"p\"><p:txBody><a:bodyPr/>",
    "</p:txBody></p:sld>"};

std::string slide_run(const std::string& text, const std::string& attributes = "") {
  return "<a:r><a:rPr" + attributes + "/><a:t>" + text + "</a:t></a:r>";
}

TEST(Pptx, ParagraphsAreTranslatedAndTheirPropertiesStay) {
  const std::string properties = "<a:pPr lvl=\"1\"/>", end = "<a:endParaRPr lang=\"en-US\"/>";
  EXPECT_EQ(kSlide.translated("<a:p>" + properties + slide_run("the red house ", " lang=\"en-US\"") + end + "</a:p>",
                              testing::red_house()),
            "<a:p>" + properties + slide_run("la casa roja", " lang=\"en-US\"") + slide_run(" ", " lang=\"en-US\"") +
                end + "</a:p>");
  EXPECT_EQ(
      kSlide.parts("<a:p>" + slide_run("one") + "</a:p><a:p>" + slide_run("two") + "</a:p><a:p>" + end + "</a:p>"),
      "[one][two]");
}

TEST(Pptx, MarksOfTheSpellingCheckerDoNotDivideText) {
  EXPECT_EQ(kSlide.translated("<a:p>" + slide_run("the ", " lang=\"en-US\" dirty=\"0\"") +
                                  slide_run("red", " lang=\"de-DE\" err=\"1\"") + slide_run(" house") + "</a:p>",
                              testing::red_house()),
            "<a:p>" + slide_run("la casa roja", " lang=\"en-US\" dirty=\"0\"") + "</a:p>");
  EXPECT_EQ(
      kSlide.translated("<a:p>" + slide_run("the ") + slide_run("red", " b=\"1\"") + slide_run(" house") + "</a:p>",
                        testing::red_house()),
      "<a:p>" + slide_run("la casa ") + slide_run("roja", " b=\"1\"") + "</a:p>");
}

TEST(Pptx, LineBreaksAndFieldsStay) {
  EXPECT_EQ(kSlide.translated("<a:p>" + slide_run("the") + "<a:br><a:rPr/></a:br>" + slide_run("red house") + "</a:p>",
                              testing::red_house()),
            "<a:p>" + slide_run("la") + "<a:br><a:rPr/></a:br>" + slide_run("casa roja") + "</a:p>");
  const std::string field = "<a:fld type=\"slidenum\"><a:rPr/><a:t>3</a:t></a:fld>";
  EXPECT_EQ(
      kSlide.translated("<a:p>" + slide_run("the ") + field + slide_run(" red house") + "</a:p>", testing::red_house()),
      "<a:p>" + slide_run("la ") + field + slide_run(" casa roja") + "</a:p>");
}

TEST(Pptx, ASingleTagAtTheBeginningIsFollowedByASpace) {
  const std::string field = "<a:fld type=\"slidenum\"><a:rPr/><a:t>3</a:t></a:fld>";
  EXPECT_EQ(kSlide.translated("<a:p>" + slide_run("page ") + field + slide_run(" here") + "</a:p>",
                              translation({"▁page", "▁here"}, {"▁aqui"}, {1})),
            "<a:p>" + field + slide_run(" aqui") + "</a:p>");
}

TEST(Pptx, TabsInATextEndParts) {
  const std::string tabbed = "<a:p>" + slide_run("one\t two", " b=\"1\"") + "</a:p>";
  EXPECT_EQ(kSlide.parts(tabbed), "[one][two]");
  const SplitText document = kSlide.split(tabbed);
  const std::string first = restore_markup(document, document.parts[0], translation({"▁one"}, {"▁eins"}, {0}));
  const std::string second = restore_markup(document, document.parts[1], translation({"▁two"}, {"▁zwei"}, {0}));
  EXPECT_EQ(join(document, std::vector{first, second}), kSlide.before + "<a:p>" + slide_run("eins", " b=\"1\"") +
                                                            slide_run("\t", " b=\"1\"") + slide_run(" ", " b=\"1\"") +
                                                            slide_run("zwei", " b=\"1\"") + "</a:p>" + kSlide.after);
}

TEST(Pptx, MembersWithTextAreRead) {
  const auto* format = find_document_format("pptx");
  for (const char* name : {"ppt/slides/slide12.xml", "ppt/notesSlides/notesSlide1.xml", "ppt/diagrams/data1.xml",
                           "ppt/diagrams/drawing1.xml"})
    EXPECT_NE(format->split_member(name), nullptr) << name;
  for (const char* name : {"ppt/slideLayouts/slideLayout1.xml", "ppt/charts/chart1.xml", "ppt/presentation.xml",
                           "ppt/slides/_rels/slide1.xml.rels"})
    EXPECT_EQ(format->split_member(name), nullptr) << name;
}

}  // namespace
}  // namespace qkv
