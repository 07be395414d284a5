// Seeds of documents: a text of each format.
#include "fuzz/seeds.h"

namespace qkv::fuzz {

void document_seeds(const std::filesystem::path& directory) {
  Seeds seeds(directory, "documents");
  seeds.add("text\nOne line.\r\n\n two\n");
  seeds.add("html\n<p>The <b>red</b> house<br>is &lt;old&gt;.</p><pre>x</pre>");
  seeds.add("srt\n1\n00:00:01,000 --> 00:00:02,000\n<i>Two</i> dogs\nrun.\n\n");
  seeds.add("vtt\nWEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000\n<v Ann>Hello <00:01.500>world &amp; all\n");
  seeds.add(
      "markdown\n---\ntitle: A page\n---\n# One *two* `x`\n\n> - a [link](u \"t\")\n>   and **more**\\\n>   text\n\n| "
      "a | b "
      "|\n|---|---|\n| c | ~~d~~ |\n\n```\ncode\n```\n<b>x</b> &amp; ![alt](p.png) <http://a.b>\n");
  seeds.add("json\n{\"a\": [\"One \\\"word\\\".\\nTwo\", \"snake_case\", 1], \"b\": {\"c\": \"\\u00e9t\\u00e9 now\"}}");
  seeds.add(
      "yaml\na: One word\nb: 'it''s one'\nc: \"two\\n\\u00e9\"\nd:\n  - 12\n  - |\n    three\n    four\n  - >-\n    "
      "five\n"
      "    six\n--- &x\ne: *x\n");
  seeds.add("properties\n# c\nkey = One \\\n  word\nb:two \\u00e9\\n\nc three\n");
  seeds.add("csv\na,b\n\"One, \"\"two\"\"\",3\nthree,\"f\no\"\n");
  seeds.add("tsv\na\tb\nOne two\t3\n");
  seeds.add(
      "po\nmsgid \"\"\nmsgstr \"Content-Type: text/plain; charset=UTF-8\\n\"\n\n#, c-format\nmsgid \"One %d\\n\"\n"
      "msgid_plural \"\"\n\"Many \"\n\"%d\\n\"\nmsgstr[0] \"\"\nmsgstr[1] \"\"\n\nmsgctxt \"m\"\nmsgid \"Two\"\nmsgstr "
      "\"\"\n");
  seeds.add(
      "xliff\n<xliff version=\"1.2\" xmlns=\"urn:oasis:names:tc:xliff:document:1.2\"><file source-language=\"en\" "
      "target-language=\"de\"><body><trans-unit id=\"1\"><source>The <g id=\"1\">red</g> <x id=\"2\"/>house</source>"
      "</trans-unit></body></file></xliff>");
  seeds.add(
      "xliff\n<xliff version=\"2.0\" xmlns=\"urn:oasis:names:tc:xliff:document:2.0\" srcLang=\"en\" "
      "trgLang=\"de\"><file "
      "id=\"f\"><unit id=\"u\"><segment><source>The <pc id=\"1\">red</pc> <ph id=\"2\"/>house</source></segment></unit>"
      "</file></xliff>");
  seeds.add(
      "tmx\n<tmx version=\"1.4\"><header srclang=\"en\"/><body><tu><tuv xml:lang=\"en\"><seg>the <bpt "
      "i=\"1\">{</bpt>red<ept i=\"1\">}</ept> <ph>x</ph>house</seg></tuv></tu></body></tmx>");
  seeds.add(
      "docx word/document.xml\n<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">"
      "<w:body><w:p><w:r><w:t xml:space=\"preserve\">The </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>red</w:t></w:r>"
      "<w:bookmarkStart w:id=\"0\"/><w:r><w:t> house</w:t><w:tab/><w:t>is "
      "old.</w:t></w:r></w:p></w:body></w:document>");
  seeds.add(
      "pptx ppt/slides/slide1.xml\n<p:sld xmlns:p=\"http://schemas.openxmlformats.org/presentationml/2006/main\" "
      "xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\"><a:p><a:r><a:rPr b=\"1\"/><a:t>The</a:t></a:r>"
      "<a:r><a:t> house</a:t></a:r><a:br/></a:p></p:sld>");
  seeds.add(
      "xlsx xl/sharedStrings.xml\n<sst xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><si><t>The "
      "house_x000D_</t></si><si><r><rPr><b/></rPr><t>is</t></r><r><t xml:space=\"preserve\"> old</t></r></si></sst>");
  seeds.add(
      "odt content.xml\n<office:document-content xmlns:office=\"urn:oasis:names:tc:opendocument:xmlns:office:1.0\" "
      "xmlns:text=\"urn:oasis:names:tc:opendocument:xmlns:text:1.0\"><office:body><office:text><text:p>The "
      "<text:span>red"
      "</text:span><text:note><text:note-body><text:p>a note</text:p></text:note-body></text:note> house<text:s/>is"
      "<text:line-break/>old.</text:p></office:text></office:body></office:document-content>");
  seeds.add(
      "epub a.xhtml\n<html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title/></head><body><p>The <b>red</b> "
      "house<br "
      "/><![CDATA[is]]> old.</p></body></html>");
  seeds.add("epub a.opf\n<package xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>A book</dc:title></package>");
}

}  // namespace qkv::fuzz
