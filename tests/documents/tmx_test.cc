#include <gtest/gtest.h>

#include "documents/document.h"
#include "qkv/error.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using testing::translation;
using testing::unchanged;

std::string memory(const std::string& units, const std::string& language = "en") {
  return "<?xml version=\"1.0\"?>\n<!DOCTYPE tmx SYSTEM \"tmx14.dtd\">\n<tmx version=\"1.4\"><header srclang=\"" +
         language + "\"/><body>\n" + units + "</body></tmx>\n";
}

std::string text_in(const std::string& language, const std::string& seg) {
  return "<tuv xml:lang=\"" + language + "\"><seg>" + seg + "</seg></tuv>";
}

DocumentOptions languages(const std::string& target, const std::string& source = "") {
  DocumentOptions options;
  options.source_language = source;
  options.target_language = target;
  return options;
}

// The memory with every part translated by itself.
std::string copied_memory(const std::string& text, const DocumentOptions& options = {}) {
  const Document document(*find_document_format("tmx"), text, options);
  std::vector<Translation> same;
  for (const std::string& part : document.part_texts()) same.push_back(unchanged(part));
  return document.translated(same);
}

std::string memory_error(const std::string& text, const DocumentOptions& options = {}) {
  try {
    copied_memory(text, options);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Tmx, ATextInTheTargetLanguageIsAddedInTheLayoutOfTheSource) {
  const std::string source =
      "  <tu>\r\n    <note>n</note>\r\n    <tuv xml:lang=\"EN-us\" creationid=\"a\">\r\n      <prop "
      "type=\"p\">q</prop>\r\n"
      "      <seg>a <hi>b</hi></seg>\r\n    </tuv>";
  const std::string added = "\r\n    <tuv xml:lang=\"de\">\r\n      <seg>a <hi>b</hi></seg>\r\n    </tuv>";
  EXPECT_EQ(copied_memory(memory(source + "\r\n  </tu>"), languages("de")), memory(source + added + "\r\n  </tu>"));
  EXPECT_EQ(copied_memory(memory("<tu>" + text_in("en", "a") + text_in("fr", "b") + "</tu>"), languages("de")),
            memory("<tu>" + text_in("en", "a") + text_in("fr", "b") + text_in("de", "a") + "</tu>"));
  EXPECT_EQ(copied_memory(memory("<tu><tuv lang=\"en\"><seg>a</seg></tuv></tu>"), languages("de")),
            memory("<tu><tuv lang=\"en\"><seg>a</seg></tuv><tuv lang=\"de\"><seg>a</seg></tuv></tu>"));
}

TEST(Tmx, UnitsThatAreTranslatedStayAndEmptySegmentsAreFilled) {
  const std::string done = "<tu>" + text_in("en", "a") + text_in("de-AT", "x") + "</tu>";
  EXPECT_EQ(copied_memory(memory(done)), memory(done));
  EXPECT_EQ(copied_memory(memory(done), languages("de")), memory(done));
  const std::string other = "<tu>" + text_in("fr", "a") + "</tu><tu>" + text_in("en", "- <ph/>") + "</tu>";
  EXPECT_EQ(copied_memory(memory(done + other)), memory(done + other));
  EXPECT_EQ(copied_memory(memory(done + "<tu>" + text_in("en", "b") + "</tu>")),
            memory(done + "<tu>" + text_in("en", "b") + text_in("de-AT", "b") + "</tu>"));  // the file's spelling
  EXPECT_EQ(copied_memory(memory("<tu><tuv xml:lang=\"de\"><seg/></tuv>" + text_in("en", "b") + "</tu>")),
            memory("<tu>" + text_in("de", "b") + text_in("en", "b") + "</tu>"));
}

TEST(Tmx, RegionsOfTheSourceLanguageCanBeTheTarget) {
  EXPECT_EQ(copied_memory(memory("<tu>" + text_in("pt", "a") + "</tu>", "pt"), languages("pt-BR")),
            memory("<tu>" + text_in("pt", "a") + text_in("pt-BR", "a") + "</tu>", "pt"));
  EXPECT_EQ(copied_memory(memory("<tu>" + text_in("en", "a") + text_in("pt_br", "b") + "</tu><tu>" +
                                 text_in("en", "c") + "</tu>"),
                          languages("pt-BR")),
            memory("<tu>" + text_in("en", "a") + text_in("pt_br", "b") + "</tu><tu>" + text_in("en", "c") +
                   text_in("pt_br", "c") + "</tu>"));
}

TEST(Tmx, InlineElementsFollowTheirWordsAndLineEndsStay) {
  const std::string seg = "the <bpt i=\"1\">{</bpt>red<ept i=\"1\">}</ept>\n<ph>x</ph>house";
  const Document document(*find_document_format("tmx"), memory("<tu>" + text_in("en", seg) + "</tu>"), languages("es"));
  EXPECT_EQ(document.part_texts(), std::vector<std::string>{"the red\nhouse"});
  const std::string translated =
      document.translated(std::vector{translation({"▁the", "▁red", "▁house"}, {"▁la", "▁<casa>", "▁roja"}, {0, 2, 1})});
  EXPECT_EQ(translated,
            memory("<tu>" + text_in("en", seg) +
                   text_in("es", "la <ph>x</ph>&lt;casa&gt; <bpt i=\"1\">{</bpt>roja<ept i=\"1\">}</ept>") + "</tu>"));
}

TEST(Tmx, LanguagesMustBeKnown) {
  const std::string english = "<tu>" + text_in("en", "a") + "</tu>";
  EXPECT_EQ(memory_error(memory(english)),
            "the memory has 0 languages besides the source: target_language must name one, such as de");
  EXPECT_EQ(memory_error(memory("<tu>" + text_in("en", "a") + text_in("fr", "b") + text_in("de", "c") + "</tu>")),
            "the memory has 2 languages besides the source (de, fr): target_language must name one, such as de");
  EXPECT_EQ(memory_error(memory(english, "*all*"), languages("de")),
            "the memory has no source language (srclang is \"*all*\"): source_language must name one, such as en");
  EXPECT_EQ(memory_error(memory(english, "*all*"), languages("de", "en")), "");
  EXPECT_EQ(memory_error(memory(english), languages("<de>")),
            "target_language \"<de>\": must be a language tag such as de or pt-BR");
  EXPECT_EQ(copied_memory(memory("<tu srclang=\"fr\">" + text_in("en", "a") + text_in("fr", "b") + "</tu>")),
            memory("<tu srclang=\"fr\">" + text_in("en", "a") + text_in("fr", "b") + "</tu>"));
  EXPECT_EQ(copied_memory(memory("")), memory(""));
  EXPECT_EQ(memory_error("<map/>"), "the root element must be <tmx> (found <map>)");
}

}  // namespace
}  // namespace qkv
