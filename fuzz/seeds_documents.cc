// Seeds of documents: a text of each format, and an archive.
#include <map>
#include <string>

#include "fuzz/seeds.h"
#include "tests/documents/archives.h"

namespace qkv::fuzz {
namespace {

// Seeds for the targets of documents.
class DocumentSeeds {
 public:
  explicit DocumentSeeds(const std::filesystem::path& directory) : directory_(directory) {}

  void add(const std::string& format, const std::string& text) { of_format(format).add(text); }

  // Adds a text of an archive's member, and an archive that has it.
  void add_member(const std::string& format, const std::string& name, const std::string& text) {
    of_format(format).add(name + "\n" + text);
    of_format(format).add("archive\n" + testing::zip_of({{"mimetype", format}, {name, text}}));
  }

 private:
  Seeds& of_format(const std::string& format) {
    const std::string target = "documents_" + format;
    return seeds_.try_emplace(target, directory_, target).first->second;
  }

  const std::filesystem::path& directory_;
  std::map<std::string, Seeds> seeds_;
};

}  // namespace

void document_seeds(const std::filesystem::path& directory) {
  DocumentSeeds seeds(directory);
  seeds.add("text", "One line.\r\n\n two\n");
  seeds.add("html", "<p>The <b>red</b> house<br>is &lt;old&gt;.</p><pre>x</pre>");
  seeds.add("srt", "1\n00:00:01,000 --> 00:00:02,000\n<i>Two</i> dogs\nrun.\n\n");
  seeds.add("vtt", "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000\n<v Ann>Hello <00:01.500>world &amp; all\n");
  seeds.add(
      "markdown",
      "---\ntitle: A page\n---\n# One *two* `x`\n\n> - a [link](u \"t\")\n>   and **more**\\\n>   text\n\n| "
      "a | b "
      "|\n|---|---|\n| c | ~~d~~ |\n\n```\ncode\n```\n<b>x</b> &amp; ![alt](p.png) <http://a.b>\n");
  seeds.add(
      "json",
      "{\"a\": [\"One \\\"word\\\".\\nTwo\", \"snake_case\", 1], \"b\": {\"c\": \"\\u00e9t\\u00e9 now\", \"d\": \"Cut "
      "\\ud83d\", \"@e\": \"A word\"}}");
  seeds.add(
      "yaml",
      "a: One word\nb: 'it''s one'\nc: \"two\\n\\u00e9\"\nd:\n  - 12\n  - |\n    three\n    four\n  - >-\n    "
      "five\n"
      "    six\n--- &x\ne: *x\n");
  seeds.add("yaml", "a: One word\u2028 \t\nb: !!str # c\u0085  'two'\nc: &x\u2029  three\n");
  seeds.add("properties", "# c\nkey = One \\\n  word\nb:two \\u00e9\\n\nc three\n");
  seeds.add("csv", "a,b\n\"One, \"\"two\"\"\",3\nthree,\"f\no\"\n");
  seeds.add("tsv", "a\tb\nOne two\t3\n");
  seeds.add(
      "po",
      "msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=UTF-8\\n\"\n\n#, c-format\nmsgid \"One %d\\n\"\n"
      "msgid_plural \"\"\n\"Many \"\n\"%d\\n\"\nmsgstr[0] \"\"\nmsgstr[1] \"\"\n\nmsgctxt \"m\"\nmsgid \"Two\"\nmsgstr "
      "\"\"\n");
  seeds.add(
      "xliff",
      "<xliff version=\"1.2\" xmlns=\"urn:oasis:names:tc:xliff:document:1.2\"><file source-language=\"en\" "
      "target-language=\"de\"><body><trans-unit id=\"1\"><source>The <g id=\"1\">red</g> <x id=\"2\"/>house</source>"
      "</trans-unit></body></file></xliff>");
  seeds.add(
      "xliff",
      "<xliff version=\"2.0\" xmlns=\"urn:oasis:names:tc:xliff:document:2.0\" srcLang=\"en\" "
      "trgLang=\"de\"><file "
      "id=\"f\"><unit id=\"u\"><segment><source>The <pc id=\"1\">red</pc> <ph id=\"2\"/>house</source></segment></unit>"
      "</file></xliff>");
  seeds.add(
      "tmx",
      "<tmx version=\"1.4\"><header srclang=\"en\"/><body><tu><tuv xml:lang=\"en\"><seg>the <bpt "
      "i=\"1\">{</bpt>red<ept i=\"1\">}</ept> <ph>x</ph>house</seg></tuv></tu></body></tmx>");
  seeds.add_member(
      "docx", "word/document.xml",
      "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">"
      "<w:body><w:p><w:r><w:t xml:space=\"preserve\">The </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>red</w:t></w:r>"
      "<w:bookmarkStart w:id=\"0\"/><w:r><w:t> house</w:t><w:tab/><w:t>is "
      "old.</w:t></w:r></w:p></w:body></w:document>");
  seeds.add_member(
      "pptx", "ppt/slides/slide1.xml",
      "<p:sld xmlns:p=\"http://schemas.openxmlformats.org/presentationml/2006/main\" "
      "xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\"><a:p><a:r><a:rPr b=\"1\"/><a:t>The</a:t></a:r>"
      "<a:r><a:t> house</a:t></a:r><a:br/></a:p></p:sld>");
  seeds.add_member(
      "xlsx", "xl/sharedStrings.xml",
      "<sst xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><si><t>The "
      "house_x000D_</t></si><si><r><rPr><b/></rPr><t>is</t></r><r><t xml:space=\"preserve\"> old</t></r></si></sst>");
  seeds.add_member(
      "odt", "content.xml",
      "<office:document-content xmlns:office=\"urn:oasis:names:tc:opendocument:xmlns:office:1.0\" "
      "xmlns:text=\"urn:oasis:names:tc:opendocument:xmlns:text:1.0\"><office:body><office:text><text:p>The "
      "<text:span>red"
      "</text:span><text:note><text:note-body><text:p>a note</text:p></text:note-body></text:note> house<text:s/>is"
      "<text:line-break/>old.</text:p></office:text></office:body></office:document-content>");
  seeds.add_member(
      "epub", "a.xhtml",
      "<html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title/></head><body><p>The <b>red</b> "
      "house<br "
      "/><![CDATA[is]]> old.</p></body></html>");
  seeds.add_member(
      "epub", "a.opf",
      "<package xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>A book</dc:title></package>");
}

}  // namespace qkv::fuzz
