// Documents that are made to take much time or memory, or to be misread.
#include "tests/support/hostile_documents.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "documents/document.h"
#include "qkv/error.h"
#include "tests/documents/archives.h"
#include "tests/support/processor_time.h"

namespace qkv {
namespace {

using testing::times;

std::string hostile_error(const std::string& format, const std::string& bytes, const DocumentOptions& options = {}) {
  try {
    const Document document(*find_document_format(format), bytes, options);
    return "none";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string hostile_docx(const std::string& body, const std::string& namespaces = "") {
  return testing::zip_of(
      {{"[Content_Types].xml", "<Types/>"},
       {"word/document.xml", "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"" +
                                 namespaces + "><w:body>" + body + "</w:body></w:document>"}});
}

TEST(HostileDocuments, ArchivesHaveALimitOfTheirText) {
  DocumentOptions options;
  options.most_bytes = 10'000;
  const std::string text = hostile_docx("<w:p><w:r><w:t>" + std::string(20'000, 'a') + "</w:t></w:r></w:p>");
  EXPECT_EQ(hostile_error("docx", text), "none");
  EXPECT_TRUE(hostile_error("docx", text, options)
                  .starts_with("the text of the archive is too large: word/document.xml "
                               "has 2"));
}

TEST(HostileDocuments, NamespacesHaveALimit) {
  const std::string name(400'000, 'u');
  EXPECT_EQ(hostile_error("docx", hostile_docx(times("<x:a/>", 4000), " xmlns:x=\"" + name + "\"")),
            "word/document.xml: line 1: a namespace has more than 512 bytes");
}

TEST(HostileDocuments, WorkbooksHaveManyShortTexts) {
  EXPECT_EQ(hostile_error("xlsx", testing::zip_of({{"xl/sharedStrings.xml",
                                                    "<sst xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/"
                                                    "main\">" +
                                                        times("<si><t>ABCD</t></si>", 80'000) + "</sst>"}})),
            "none");
}

TEST(HostileDocuments, BombsAreRefusedInOneLine) {
  for (const testing::HostileDocument& document : testing::hostile_documents()) {
    const std::string error = hostile_error(document.format, document.bytes);
    EXPECT_TRUE(error.starts_with(document.error.empty() ? "none" : document.error)) << document.name << ": " << error;
    EXPECT_EQ(error.find('\n'), error.npos) << document.name;
  }
}

TEST(HostileDocuments, MarkupOfRunsIsNotRepeatedWithoutALimit) {
  const std::string run = "<w:p><w:r><w:rPr><w:x w:y=\"" + std::string(3000, 'z') + "\"/></w:rPr>";
  EXPECT_EQ(hostile_error("docx", hostile_docx(run + times("<w:t>a.</w:t><w:sym/>", 5000) + "</w:r></w:p>")),
            "word/document.xml: the tags of the text take more than 4 times its size");
}

TEST(HostileDocuments, TagsOfSubtitlesTakeLinearTime) {
  std::string error;
  const auto read = [&] { error = hostile_error("srt", "0:00:01 --> 0:00:02\n" + times("<1", 1'000'000)); };
  EXPECT_LT(testing::processor_seconds(read), 20);  // quadratic: minutes
  EXPECT_EQ(error, "none");
}

TEST(HostileDocuments, OldOrProtectedFilesOfOfficeAreNamed) {
  EXPECT_EQ(hostile_error("docx", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"),
            "it is protected by a password, or in a format of Office before 2007 (must be a docx file)");
  EXPECT_EQ(hostile_error("docx", "no archive"), "the archive is damaged: Not a zip archive");
  EXPECT_EQ(hostile_error("epub", testing::zip_of({{"a", "b"}})), "the archive has no text of the format epub");
}

TEST(HostileDocuments, OtherEncodingsOfHtmlGetReferences) {
  const auto translated = [](const std::string& head) {
    const Document document(*find_document_format("html"), head + "<p>small</p>");
    Translation translation{"small", {}, {{}}};
    translation.hypotheses[0].text = "schön & 😀";
    return document.translated(std::vector{translation});
  };
  EXPECT_EQ(translated("<meta charset=\"ISO-8859-1\">"),
            "<meta charset=\"ISO-8859-1\"><p>sch&#246;n &amp; &#128512;</p>");
  EXPECT_EQ(translated("<meta charset=utf-8>"), "<meta charset=utf-8><p>schön &amp; 😀</p>");
  EXPECT_EQ(translated(""), "<p>schön &amp; 😀</p>");
}

TEST(HostileDocuments, FlagsOfObsoleteEntriesStayTheirs) {
  const std::string header = "msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=UTF-8\\n\"\n\n";
  const Document document(*find_document_format("po"), header +
                                                           "#, fuzzy\n#~ msgid \"old\"\n#~ msgstr \"alt\"\n\n"
                                                           "msgid \"Two dogs\"\nmsgstr \"\"\n\n"
                                                           "#, fuzzy\nmsgid \"One dog\"\nmsgstr \"\"\n");
  EXPECT_EQ(document.part_texts(), std::vector<std::string>{"Two dogs"});
}

TEST(HostileDocuments, ATargetLanguageThatTheFileContradictsIsRefused) {
  const std::string file =
      "<xliff version=\"1.2\" xmlns=\"urn:oasis:names:tc:xliff:document:1.2\"><file source-language=\"en\" "
      "target-language=\"fr\"><body><trans-unit id=\"1\"><source>Two dogs</source></trans-unit></body></file></xliff>";
  DocumentOptions options;
  options.target_language = "de";
  EXPECT_EQ(hostile_error("xliff", file, options), "the target language of the file is fr (asked for de)");
  options.target_language = "fr-CA";
  EXPECT_EQ(hostile_error("xliff", file, options), "none");
}

}  // namespace
}  // namespace qkv
