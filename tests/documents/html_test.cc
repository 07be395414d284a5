#include "documents/html.h"

#include <gtest/gtest.h>

#include "documents/restore_markup.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using Texts = std::vector<std::string>;

Texts texts_of_html(const std::string& html) {
  Texts texts;
  for (const TextPart& part : split_html(html).parts) texts.push_back(part.text);
  return texts;
}

// The document with every part in brackets.
std::string with_brackets(const std::string& html) {
  const SplitText document = split_html(html);
  Texts marked;
  for (const TextPart& part : document.parts) marked.push_back("[" + std::string(document.bytes_of(part)) + "]");
  return join(document, marked);
}

// The tags of the only part with their places: "(3" opens, ")5" closes, ".7" is single.
std::string tags_of_html(const std::string& html) {
  const SplitText document = split_html(html);
  EXPECT_EQ(document.parts.size(), 1u) << html;
  std::string tags;
  for (const TextPart& part : document.parts)
    for (const InlineTag& tag : part.tags)
      tags += std::string_view("().")[static_cast<size_t>(tag.kind)] + std::to_string(tag.at);
  return tags;
}

TEST(Html, TextBetweenTagsOfBlocksIsTranslated) {
  EXPECT_EQ(with_brackets("<!DOCTYPE html>\n<html><head><title>Two dogs</title></head>\n<body><h1>A dog</h1> <p>It "
                          "runs.\n<li>One<li>Two<table><tr><td>Cell</table>"),
            "<!DOCTYPE html>\n<html><head><title>[Two dogs]</title></head>\n<body><h1>[A dog]</h1> <p>[It "
            "runs.]\n<li>[One]<li>[Two]<table><tr><td>[Cell]</table>");
  EXPECT_EQ(with_brackets("no tags at all"), "[no tags at all]");
  EXPECT_EQ(with_brackets(""), "");
}

TEST(Html, TagsAttributesCommentsAndKeptElementsStay) {
  for (const char* html : {"<script>if (a < b) document.write('<p>x</p>')</script>",
                           "<style>p > a { content: 'text' }</style>",
                           "<pre>one\n  <b>two</b></pre>",
                           "<textarea><p>text</textarea>",
                           "<!-- <p>text --!>",
                           "<!--> -->",
                           "<!--->",
                           "<img alt=\"a > b\" title='text'>",
                           "<a href=x title=\"<p>text</p>\"></a>",
                           "<?php echo 'text' ?>",
                           "</ text>",
                           "<!text>",
                           "<p translate=no>text",
                           "<div class='x notranslate'><div>text</div>text</div>",
                           "<svg><title>text</title><style>text<p/></style><![CDATA[</svg>text]]><path d='M'/></svg>",
                           "<math><mi>x</mi></math>",
                           "<script><!-- <script>text</script>text --></script>",
                           "<code>text</code>",
                           "<address>text</address>",
                           "<plaintext>text<p>text",
                           "<xmp><p>text</xmp>",
                           "<p title='text",
                           "&nbsp;",
                           "- – …",
                           "<TEXTAREA>text</textareA >",
                           "<span TRANSLATE = 'No'>text</span>",
                           "<script>text</scripts>"})
    EXPECT_EQ(texts_of_html(html), Texts()) << html;
  EXPECT_EQ(texts_of_html("<svg/>text<math></math>more"), Texts({"textmore"}));
  EXPECT_EQ(texts_of_html("<script><!--></script>text"), Texts({"text"}));
  EXPECT_EQ(texts_of_html("<p translate=yes class=\"a nottranslate\">text"), Texts({"text"}));
  EXPECT_EQ(texts_of_html("<p translate=yes translate=no>text"), Texts({"text"}));
}

TEST(Html, KeptElementsEndWithTheirTagOrTheElementAroundThem) {
  EXPECT_EQ(with_brackets("<p>one <span translate=no>x <span>y</span> z</span> two</p>"),
            "<p>[one <span translate=no>x <span>y</span> z</span> two]</p>");
  EXPECT_EQ(with_brackets("<ul><li translate=no>x<li>one<li class=notranslate>y</ul>two"),
            "<ul><li translate=no>x<li>[one]<li class=notranslate>y</ul>[two]");
  EXPECT_EQ(with_brackets("<p translate=no>x<p>one<p translate=no>y <b>z</b><div>two</div>"),
            "<p translate=no>x<p>[one]<p translate=no>y <b>z</b><div>[two]</div>");
  EXPECT_EQ(with_brackets("<table><tr translate=no><td>x<td>y<tr><td>one</table>"),
            "<table><tr translate=no><td>x<td>y<tr><td>[one]</table>");
  EXPECT_EQ(with_brackets("<b><i translate=no>x</b>one"), "<b><i translate=no>x</b>[one]");
  EXPECT_EQ(with_brackets("<b><p translate=no>x</b>y</p>one"), "<b><p translate=no>x</b>y</p>[one]");
  EXPECT_EQ(with_brackets("<code translate=no>x<br>y</code> one."), "<code translate=no>x<br>y</code> [one.]");
  EXPECT_EQ(with_brackets("One.<code>x<br>y</code> two"), "[One.<code>x<br>y</code> two]");
}

TEST(Html, CharacterReferencesAreDecodedAndWhiteSpaceIsFolded) {
  EXPECT_EQ(texts_of_html("<p>\n  R&eacute;sum&#xE9; &amp;\tco &lt;b&gt; &notit; &#128; &bogus; &#0; a & b &</p>"),
            Texts({"Résumé & co <b> ¬it; € &bogus; \uFFFD a & b &"}));
  EXPECT_EQ(texts_of_html("<title>a &amp; <b></title>"), Texts({"a & <b>"}));
  EXPECT_EQ(texts_of_html("1 < 2 <3 <"), Texts({"1 < 2 <3 <"}));
  EXPECT_EQ(with_brackets("<p>&nbsp; one&nbsp;two &nbsp;</p>"), "<p>&nbsp; [one&nbsp;two] &nbsp;</p>");
  EXPECT_EQ(with_brackets("\uFEFFone"), "\uFEFF[one]");
}

// LibreTranslate#806: an element is not a sentence.
TEST(Html, InlineTagsDoNotEndATextAndStandWhereTheyStood) {
  EXPECT_EQ(texts_of_html("<a href=#><em><span>View the range of\n</span></em>\n<em><span>systems</span></em></a>"),
            Texts({"View the range of systems"}));
  EXPECT_EQ(tags_of_html("<p>The <b>red <i>dog</i></b> runs.</p>"), "(3(7)11)11");
  EXPECT_EQ(tags_of_html("a<x-y>b</x-y>c<wbr>d<!-- e -->f"), "(1)2.3.4");
  EXPECT_EQ(tags_of_html("A <b></b>dog <a href=x><img></a> runs <code>f()</code>, it"), ".1.5.10");
  EXPECT_EQ(texts_of_html("Use <code>f()</code>, then <kbd>Enter</kbd>"), Texts({"Use, then Enter"}));
}

TEST(Html, WhiteSpaceInAnElementWithoutTextIsWhiteSpace) {
  EXPECT_EQ(texts_of_html("A.<span> </span>B."), Texts({"A. B."}));
  EXPECT_EQ(tags_of_html("A.<span> </span>B."), ".2");
  EXPECT_EQ(texts_of_html("A.<b><i>&nbsp;</i></b>“B”<b><br></b>C<span></span>D"), Texts({"A. “B” CD"}));
  EXPECT_EQ(texts_of_html("A<span><img></span>B <span> </span> C"), Texts({"AB C"}));
}

TEST(Html, MarksOfFootnotesStay) {
  EXPECT_EQ(texts_of_html("The house<a href=#f1 role='doc-noteref'>1</a> is red."), Texts({"The house is red."}));
  EXPECT_EQ(texts_of_html("<li>A note.<a epub:type=\"x backlink\">back</a><a role=link>link</a></li>"),
            Texts({"A note.link"}));
}

TEST(Html, TagsAroundAWholeTextStayOutside) {
  EXPECT_EQ(with_brackets("<p><a href=x><b> Two dogs </b></a><img></p>"),
            "<p><a href=x><b> [Two dogs] </b></a><img></p>");
  EXPECT_EQ(with_brackets("<i class=icon></i> <b>Two</b> dogs <br>"), "<i class=icon></i> [<b>Two</b> dogs] <br>");
  EXPECT_EQ(with_brackets("</b>Two <i>dogs</i> run<i>"), "</b>[Two <i>dogs</i> run]<i>");
  EXPECT_EQ(with_brackets("<a>Two <b>dogs</b></a>"), "<a>[Two <b>dogs</b>]</a>");
  EXPECT_EQ(with_brackets("<a><div>Two</div> dogs</a>"), "<a><div>[Two]</div> [dogs]</a>");
}

TEST(Html, LineBreaksEndATextAfterASentence) {
  EXPECT_EQ(with_brackets("One.<br>Two<br>three<br><br>Four<br/> <br>five"),
            "[One.]<br>[Two<br>three]<br><br>[Four]<br/> <br>[five]");
  EXPECT_EQ(texts_of_html("one<br>two"), Texts({"one two"}));
  EXPECT_EQ(with_brackets("(One.)</br>Two"), "[(One.)]</br>[Two]");
}

// The document with every part in brackets.
std::string xhtml_with_brackets(const std::string& xhtml) {
  const SplitText document = split_xhtml(xhtml);
  Texts marked;
  for (const TextPart& part : document.parts) marked.push_back("[" + std::string(document.bytes_of(part)) + "]");
  return join(document, marked);
}

TEST(Xhtml, AnyElementMayBeSelfClosing) {
  EXPECT_EQ(xhtml_with_brackets("<head><title/><script src=\"x\"/><style/></head><p>One<a id=\"x\"/> two</p>"),
            "<head><title/><script src=\"x\"/><style/></head><p>[One<a id=\"x\"/> two]</p>");
  EXPECT_EQ(xhtml_with_brackets("<title>One</title><p/>Two<textarea/>Three<iframe/>four"),
            "<title>[One]</title><p/>[Two]<textarea/>[Three<iframe/>four]");
  EXPECT_EQ(xhtml_with_brackets("<p class=\"notranslate\"/>One"), "<p class=\"notranslate\"/>[One]");
  EXPECT_EQ(with_brackets("<title/>One</title><p>Two"), "<title/>[One]</title><p>[Two]");  // not in HTML
}

TEST(Xhtml, EndTagsOfVoidElementsBelongToTheirStartTags) {
  EXPECT_EQ(xhtml_with_brackets("<p>One<br></br>two<img src=\"x\"></img> three<hr></hr>four</p>"),
            "<p>[One<br></br>two<img src=\"x\"></img> three]<hr></hr>[four]</p>");
  const SplitText document = split_xhtml("<p>One<br></br>two</p>");
  ASSERT_EQ(document.parts.at(0).tags.size(), 1u);
  EXPECT_EQ(document.bytes_of(document.parts[0].tags[0]), "<br></br>");
}

TEST(Xhtml, CdataSectionsAreText) {
  const SplitText document = split_xhtml("<p>A&nbsp;<![CDATA[ <b> & ]]>c<![CDATA[]]>d <![CDATA[ ]]>e</p>");
  ASSERT_EQ(document.parts.size(), 1u);
  EXPECT_EQ(document.parts[0].text, "A\u00A0 <b> & cd e");
  EXPECT_EQ(document.parts[0].tags.size(), 0u);
  EXPECT_EQ(xhtml_with_brackets("<p><![CDATA[\n One]]></p><script><![CDATA[</script>x]]></script><p>Two"),
            "<p>[<![CDATA[\n One]]>]</p><script><![CDATA[</script>x]]></script><p>[Two]");
  EXPECT_EQ(with_brackets("<p>One <![CDATA[ two ]]></p>"), "<p>[One] <![CDATA[ two ]]></p>");  // a comment in HTML
}

TEST(Xhtml, TranslationsHaveReferencesOfXmlOnly) {
  const SplitText document = split_xhtml("<p>a&nbsp;&eacute;</p>");
  EXPECT_EQ(document.parts.at(0).text, "a\u00A0é");
  EXPECT_EQ(restore_markup(document, document.parts[0], testing::translation({"▁a"}, {"▁x\u00A0é<&"}, {0})),
            "x\u00A0é&lt;&amp;");
}

TEST(Html, DeepNestingAndBrokenTagsAreLinear) {
  const auto repeated = [](std::string_view text, size_t bytes) {
    std::string all;
    while (all.size() < bytes) all += text;
    return all;
  };
  for (const char* text : {"<",
                           "<b>",
                           "<div>",
                           "<b>x",
                           "</b>",
                           "<b></i>",
                           "<!--",
                           "<!-",
                           "<a b=\"",
                           "<a =",
                           "&",
                           "&amp",
                           "<li>",
                           "<p translate=no>",
                           "<svg>",
                           "<br>",
                           "<script>",
                           "<title>",
                           "</",
                           "<![CDATA[",
                           "x<br>",
                           "<table><td>",
                           "<b translate=no><i></b>"}) {
    const std::string html = repeated(text, 300'000) + "x";
    const SplitText document = split_html(html);
    Texts same;
    for (const TextPart& part : document.parts) same.emplace_back(document.bytes_of(part));
    EXPECT_EQ(join(document, same), html) << text;
    const SplitText of_xml = split_xhtml(html);
    same.clear();
    for (const TextPart& part : of_xml.parts) same.emplace_back(of_xml.bytes_of(part));
    EXPECT_EQ(join(of_xml, same), html) << text;
  }
}

}  // namespace
}  // namespace qkv
