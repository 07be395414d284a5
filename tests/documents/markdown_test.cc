#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "documents/document.h"
#include "documents/html_tokens.h"
#include "documents/markdown/markdown_events.h"
#include "documents/restore_markup.h"
#include "qkv/error.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using Pieces = std::vector<std::string>;
using testing::translation;

Document markdown(const std::string& text) { return Document(*find_document_format("markdown"), text); }

// The document with every part in parentheses, by replacements that are not escaped.
std::string in_parentheses(const std::string& text) {
  const Document document = markdown(text);
  std::vector<std::string> marked;
  for (const SplitText& split : document.texts())
    for (const TextPart& part : split.parts) marked.push_back("(" + std::string(split.bytes_of(part)) + ")");
  return document.replaced(marked);
}

Pieces part_texts(const std::string& text) { return markdown(text).part_texts(); }

// The document with its parts translated to these texts, without an alignment.
std::string put_texts(const std::string& text, const Pieces& texts) {
  std::vector<Translation> translations(texts.size());
  for (size_t i = 0; i < texts.size(); i++) {
    translations[i].hypotheses.resize(1);
    translations[i].hypotheses[0].text = texts[i];
  }
  return markdown(text).translated(translations);
}

std::string put(const std::string& text, const Translation& translated) {
  return markdown(text).translated(std::vector{translated});
}

TEST(Markdown, FilesAreFoundByTheirExtension) {
  EXPECT_EQ(format_of_file("README.md")->name, "markdown");
  EXPECT_EQ(format_of_file("a.Markdown")->name, "markdown");
}

TEST(Markdown, BlocksArePartsAndMarksStay) {
  EXPECT_EQ(in_parentheses("# One\n\nTwo\nlines.\n\n- three\n- [x] four\n\n  five\n1. six\n\n> seven\n> lines\n\n"
                           "Eight\n=====\n\n    code\n\n```sh\necho a\n```\n\n***\n"),
            "# (One)\n\n(Two\nlines.)\n\n- (three)\n- [x] (four)\n\n  (five)\n1. (six)\n\n> (seven\n> lines)\n\n"
            "(Eight)\n=====\n\n    code\n\n```sh\necho a\n```\n\n***\n");
  EXPECT_EQ(in_parentheses("| A | B |\n|---|:-:|\n| c \\| d | 12 |\n| `e` | **f** |\nG | h\n"),
            "| (A) | (B) |\n|---|:-:|\n| (c \\| d) | (12) |\n| `e` | **(f)** |\n(G) | (h)\n");
  EXPECT_EQ(in_parentheses("<div>\n<b>A</b> <code>b</code> c\n</div>\n\n<!-- d -->\n\ne <!-- f --> g <span>h</span>\n"),
            "<div>\n(<b>A</b> <code>b</code> c)\n</div>\n\n<!-- d -->\n\n(e) <!-- f --> (g <span>h</span>)\n");
}

TEST(Markdown, ATextIsReadWithoutItsMarks) {
  EXPECT_EQ(
      part_texts("A *b\n  c* **d** [e](f \"g\"), `h` ~~i~~\\\n\\*j\\* &amp; &copy; &foo; <k@l.mn> https://o.p.\n"),
      Pieces{"A b c d e, i *j* & © &foo;."});
  EXPECT_EQ(part_texts("> a\nb\n> > c\n"), (Pieces{"a b", "c"}));
  EXPECT_EQ(part_texts("**All** of `it`\n\n**Bold.**\n\n[![Badge](a.svg)](b)\n"), (Pieces{"All of", "Bold.", "Badge"}));
  EXPECT_EQ(part_texts("`a`\n\n![](b)\n\n1.\n\n***\n\nhttps://a.b\n"), Pieces{});
}

TEST(Markdown, AddressesStay) {
  EXPECT_EQ(part_texts("see \"http://a.b/c_d\", [me@a.org](x) or acorn@5.7.2, not @me nor a@b.\n"),
            Pieces{"see \"\", or, not @me nor a@b."});
  EXPECT_EQ(in_parentheses("a.b+c@d.ef.\n\nwww.a.b\n"), "a.b+c@d.ef.\n\nwww.a.b\n");
}

TEST(Markdown, EverythingInMarksOfOtherDialectsStays) {
  EXPECT_EQ(in_parentheses("---\ntitle: A\nlayout: b\n---\nC\n"), "---\ntitle: (A)\nlayout: b\n---\n(C)\n");
  EXPECT_EQ(in_parentheses("---\n\nA\n\n---\n"), "---\n\n(A)\n\n---\n");
  EXPECT_EQ(in_parentheses("+++\ntitle = \"A\"\n+++\nB\n"), "+++\ntitle = \"A\"\n+++\n(B)\n");
  EXPECT_EQ(in_parentheses(":::note\nA\n:::\n\n> [!TIP]\n> B\n\nC[^1]\n\n[^1]: D\n[^2]: *E*\n"),
            ":::note\n(A)\n:::\n\n> [!TIP]\n> (B)\n\n(C)[^1]\n\n[^1]: (D)\n[^2]: *(E)*\n");
  EXPECT_EQ(in_parentheses("Term\n: Text\n\n!!! note \"X\"\n    Body\n\n## A {#b .c}\n"),
            "(Term)\n: (Text)\n\n!!! note \"X\"\n    (Body)\n\n## (A) {#b .c}\n");
  EXPECT_EQ(part_texts("A $x_1 * y_2$ b {{ c }} {% d %} e :tada: {ref}`f` [[g]] [@h] $5 or US$ 6\n"),
            Pieces{"A b e $5 or US$ 6"});
  EXPECT_EQ(in_parentheses("$$\na = b\n$$\n\n```{note}\nA\n```\n"), "$$\na = b\n$$\n\n```{note}\nA\n```\n");
  EXPECT_EQ(in_parentheses("Before:\n| A | B |\n|---|---|\n| c | d |\n"),
            "(Before:)\n| (A) | (B) |\n|---|---|\n| (c) | (d) |\n");
}

TEST(Markdown, TagsOfSeveralLinesAreRead) {
  EXPECT_EQ(part_texts("> a <b\n> c=d>e</b> f <!-- g\n> h --> i\n"), (Pieces{"a e f", "i"}));
  EXPECT_EQ(part_texts("a <code\nb>c</code> d 2<sup>3</sup> <i translate=no>e</i>\n"), Pieces{"a d 2"});
  EXPECT_EQ(in_parentheses("[one.\\\ntwo]\n\n[one.\\\ntwo]: a\n"), "[(one.\\\ntwo])\n\n[one.\\\ntwo]: a\n");
}

TEST(Markdown, TagsMoveWithTheirWords) {
  const Translation house = translation({"▁the", "▁red", "▁house"}, {"▁la", "▁casa", "▁roja"}, {0, 2, 1});
  EXPECT_EQ(put("the **red** house\n", house), "la casa **roja**\n");
  EXPECT_EQ(put("the [red](a \"b\") *house*\n", house), "la *casa* [roja](a \"b\")\n");
  EXPECT_EQ(put("> the ![red](a)\n> house\n", house), "> la casa\n> ![roja](a)\n");
  EXPECT_EQ(put("the `x` red house `y`\n", house), "la `x` casa roja `y`\n");
  EXPECT_EQ(put("the <b>red</b> house\n", house), "la casa <b>roja</b>\n");
}

TEST(Markdown, ASingleTagKeepsItsSpaceAtTheEdgeOfATranslation) {
  EXPECT_EQ(put("a `b` c\n", translation({"▁a", "▁c"}, {"▁x"}, {0})), "x `b`\n");
  EXPECT_EQ(put("a `b` c\n", translation({"▁a", "▁c"}, {"▁x"}, {1})), "`b` x\n");
  EXPECT_EQ(put("see [`a` docs](b) now\n",
                translation({"▁see", "▁docs", "▁now"}, {"▁jetzt", "▁Doku", "▁ansehen"}, {2, 1, 0})),
            "jetzt [`a` Doku](b) ansehen\n");
  EXPECT_EQ(put("[see `a`](b) now\n", translation({"▁see", "▁now"}, {"▁siehe", "▁jetzt"}, {0, 1})),
            "[siehe `a`](b) jetzt\n");
}

TEST(Markdown, LinksToDefinitionsKeepTheirNames) {
  const Translation translated = translation({"▁see", "▁docs", "▁now"}, {"▁siehe", "▁Handbuch", "▁jetzt"}, {0, 1, 2});
  const std::string definition = "\n[docs]: a.md\n[see docs now]: b.md\n";
  EXPECT_EQ(put("see [docs] now\n" + definition, translated), "siehe [Handbuch][docs] jetzt\n" + definition);
  EXPECT_EQ(put("see [docs][] now\n" + definition, translated), "siehe [Handbuch][docs] jetzt\n" + definition);
  EXPECT_EQ(put("see [docs][Docs] now\n" + definition, translated), "siehe [Handbuch][Docs] jetzt\n" + definition);
  EXPECT_EQ(put("- **[see docs now]**\n" + definition, translated),
            "- **[siehe Handbuch jetzt][see docs now]**\n" + definition);
  EXPECT_EQ(put("[docs] x\n" + definition, translation({"▁docs", "▁x"}, {"▁a", "(", "b", ")"}, {0, 1, 1, 1})),
            "[a][docs]\\(b)\n" + definition);
}

TEST(Markdown, ParagraphsHaveAsManyLinesWithTheirPrefix) {
  EXPECT_EQ(put_texts("> - one two\n>   three four\n>   five six\n", {"eins zwei drei vier fünf sechs"}),
            "> - eins zwei\n>   drei vier\n>   fünf sechs\n");
  EXPECT_EQ(put_texts("one\r\ntwo\r\n", {"eins zwei"}), "eins\r\nzwei\r\n");
  EXPECT_EQ(put_texts("one two\nthree\n", {"eins - zwei"}), "eins\n\\- zwei\n");
  EXPECT_EQ(put("> one `a\n> b`\n> two\n", translation({"▁one", "▁two"}, {"▁eins", "▁zwei"}, {0, 1})),
            "> eins\n> `a\n> b` zwei\n");
  EXPECT_EQ(put("one  \ntwo\\\nthree\n", translation({"▁one", "▁two", "▁three"}, {"▁a", "▁b", "▁c"}, {0, 1, 2})),
            "a  \nb\\\nc\n");
  EXPECT_EQ(put("one\\\ntwo\n", translation({"▁one", "▁two"}, {"▁a"}, {1})), "<br/>a\n");
}

TEST(Markdown, MarkupInATranslationIsEscaped) {
  const std::array<std::array<std::string, 2>, 27> paragraphs = {{
      {"# a", "\\# a"},
      {"#a", "#a"},
      {"- a", "\\- a"},
      {"-5", "-5"},
      {"+ a", "\\+ a"},
      {"1. a", "1\\. a"},
      {"2024) a", "2024\\) a"},
      {"1.5 a", "1.5 a"},
      {"> a", "\\> a"},
      {"--- a", "\\--- a"},
      {"=== a", "\\=== a"},
      {"a * b", "a * b"},
      {"a *b*", "a \\*b\\*"},
      {"snake_case", "snake_case"},
      {"_a_", "\\_a\\_"},
      {"“_a_”", "“\\_a\\_”"},
      {"`a`", "\\`a\\`"},
      {"[a](b)", "\\[a\\](b)"},
      {"a < b, a <b>", "a < b, a \\<b>"},
      {"AT&T &amp; &#33;", "AT&T \\&amp; \\&#33;"},
      {"C:\\a \\* \\", "C:\\a \\\\\\* \\\\"},
      {"~~a~~", "\\~\\~a\\~\\~"},
      {"5$ and $6", "5\\$ and $6"},
      {"{{a}}", "\\{{a}}"},
      {": a", "\\: a"},
      {" a", "&#32;a"},
      {"a | b", "a | b"},
  }};
  for (const auto& [text, written] : paragraphs) EXPECT_EQ(put_texts("x\n", {text}), written + "\n");
  EXPECT_EQ(put_texts("# x #\n", {"1. C #"}), "# 1. C \\# #\n");
  EXPECT_EQ(put_texts("**x**\n", {"1. a"}), "**1. a**\n");
  EXPECT_EQ(put_texts("|a|b|\n|-|-|\n", {"x|y", "- z"}), "|x\\|y|- z|\n|-|-|\n");
  EXPECT_EQ(put_texts("<p>x</p>\n", {"a*b <c>"}), "<p>a*b &lt;c&gt;</p>\n");
}

TEST(Markdown, EmphasisIsReadNextToAnyCharacters) {
  const Pieces source = {"▁A", "▁B", "▁C"};
  const auto put_line = [&](const std::string& text, const Pieces& target) {
    return put(text, translation(source, target, {0, 1, 2}));
  };
  EXPECT_EQ(put_line("A **B** C\n", {"▁中文", "“好”", "文"}), "中&#25991;**“好”**&#25991;\n");
  EXPECT_EQ(put_line("A _B_ C\n", {"▁a", "b", "c"}), "_abc_\n");  // words are not divided
  EXPECT_EQ(put_line("A **B** *C*\n", {"▁x", "▁y", "“z”"}), "x **y**<!-- -->*“z”*\n");
  EXPECT_EQ(put("A **B** C\n", translation(source, {}, {})), "\n");
  EXPECT_EQ(put("A [B](c)\n", translation({"▁A", "▁B"}, {"▁x", "!", "▁y"}, {0, 0, 1})), "x! [y](c)\n");
  EXPECT_EQ(put("A [B](c)\n", translation({"▁A", "▁B"}, {"▁x", "!", "y"}, {0, 0, 1})), "x\\![y](c)\n");
}

TEST(Markdown, ValuesOfTheFrontMatterAreQuoted) {
  EXPECT_EQ(put_texts("---\ntitle: A b\ndescription: 'C'\nsummary: \"D\"\n---\n", {"x: \"y\"", "it's", "z\\"}),
            "---\ntitle: \"x: \\\"y\\\"\"\ndescription: \"it's\"\nsummary: \"z\\\\\"\n---\n");
  EXPECT_EQ(part_texts("---\ntitle: [a, b]\nsubtitle: a # b\nsummary: >\n  c\ndescription: 'it''s'\n---\n"), Pieces{});
}

TEST(Markdown, CodeDoesNotTouchOtherCode) {
  EXPECT_EQ(put("`a`/`b` and `c`", translation({"▁/", "▁and"}, {"▁und"}, {1})), "`a` `b` und `c`");
  EXPECT_EQ(put("and `a` or `b`/`c`", translation({"▁and", "▁or", "▁/"}, {"▁und", "▁oder"}, {0, 1})),
            "und `a` oder `b` `c`");
  EXPECT_EQ(put("a `b`/`c`/`d` e", translation({"▁a", "▁/", "▁/", "▁e"}, {"▁x", "▁y"}, {0, 3})), "x `b` `c` `d` y");
}

TEST(Markdown, AddressesWithDollarsAreNoFormulas) {
  EXPECT_EQ(part_texts("[![one](a$b)](c$d) two $x](y)$ three $[x](y)$"), Pieces{"one two $x](y)$ three"});
}

// Blocks as md4c reads them, their spans, and their texts without white space.
struct Outline {
  Pieces blocks = {}, texts = {};
  std::vector<Pieces> spans = {};
};

Outline outline(const std::string& text) {
  Outline outline;
  for (const MarkdownEvent& event : read_markdown(text)) {
    switch (event.kind) {
      case MarkdownEvent::Kind::enter_block:
      case MarkdownEvent::Kind::leave_block:
        outline.blocks.push_back(std::to_string(event.block) +
                                 (event.kind == MarkdownEvent::Kind::enter_block ? "+" : "-"));
        outline.texts.push_back("");
        outline.spans.push_back({});
        break;
      case MarkdownEvent::Kind::enter_span:
        outline.spans.back().push_back(std::to_string(event.span));
        break;
      case MarkdownEvent::Kind::text:
        if (event.begin == MarkdownEvent::kNone || (event.text != MD_TEXT_NORMAL && event.text != MD_TEXT_ENTITY))
          break;
        for (size_t at = event.begin; at < event.end;) {
          const size_t length =
              event.text == MD_TEXT_ENTITY ? decode_reference(text.substr(at), outline.texts.back()) : 0;
          if (length == 0 && text[at] != ' ') outline.texts.back() += text[at];
          at += std::max<size_t>(length, 1);
        }
        break;
      default:
        break;
    }
  }
  for (Pieces& spans : outline.spans) std::ranges::sort(spans);
  return outline;
}

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

TEST(Markdown, NoTranslationChangesTheStructure) {
  const std::string source =
      "# Head **line** one\n\nA *para* graph `code` with\na [link](x) and __strong__ ![pic](y).\n\n"
      "> quoted [text][ref]\n> of ~~two~~ lines\n\n- item <b>one</b> here\n- item\n  two [ref] there\n  1. deep *er* "
      "text\n\n"
      "| cell **one** | b |\n|---|---|\n| c | d *e* |\n\nSet *ext*\n---\n\n[ref]: z\n";
  const Pieces words = {"word", "Wort", "中文", "“a”",   "(b)", "#",      "##", "-", "--",  "---", "1.",
                        "2)",   ">",    "*",    "**",    "***", "_",      "__", "`", "```", "[x]", "](y)",
                        "<b>",  "<!--", "|",    "&amp;", "&",   "\\",     "~~", "~", "===", "+",   "!",
                        "$",    "$x$",  "a_b_", "*c*",   ":",   "{{d}}",  "[",  "]", "(",   "<",   "</i",
                        "\\*e", "_f",   "g_",   "|-|-|", "…",   "[ref]:", "h!"};
  const Document document = markdown(source);
  const Outline before = outline(source);
  std::minstd_rand random(11);
  for (int round = 0; round < 2000; round++) {
    std::vector<Translation> translations;
    for (const std::string& text : document.part_texts()) {
      Pieces tokens, target;
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find(' ', begin), text.size());
        tokens.push_back("▁" + text.substr(begin, end - begin));
        begin = end + 1;
      }
      std::vector<int32_t> sources;
      for (size_t i = 0; i < 1 + random() % 9; i++) {
        target.push_back((i == 0 || random() % 4 ? "▁" : "") + words[random() % words.size()]);
        sources.push_back(static_cast<int32_t>(random() % (tokens.size() + 1)) - 1);
      }
      if (random() % 3 == 0) target[random() % target.size()] = "▁word";
      translations.push_back(translation(tokens, target, sources));
    }
    const std::string put = document.translated(translations);
    const Outline after = outline(put);
    ASSERT_EQ(after.blocks, before.blocks) << put;
    size_t part = 0;
    for (size_t i = 0; i < before.blocks.size(); i++) {
      if (before.texts[i].empty()) continue;
      ASSERT_EQ(after.texts[i], without_spaces(translations[part++].hypotheses[0].text)) << put;
      // Emphasis without text is left out.
      for (const MD_SPANTYPE span : {MD_SPAN_A, MD_SPAN_IMG, MD_SPAN_CODE})
        ASSERT_EQ(std::ranges::count(after.spans[i], std::to_string(span)),
                  std::ranges::count(before.spans[i], std::to_string(span)))
            << put;
    }
    ASSERT_EQ(part, translations.size());
  }
}

TEST(Markdown, HostileDocumentsAreReadInLinearTime) {
  const auto repeated = [](const std::string& text, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; i++) all += text;
    return all;
  };
  for (const char* text :
       {">",  "- ",  "[",  "![",    "](", "*a ", "**a*", "_", "`",  "<",     "<!--",  "&",      "$", "$$a",
        "{{", "{{`", "[^", "[^1]:", ":a", ":",   "~~a ", "@", "\\", "a  \n", "a\\\n", "<code>", "|", "a|b\n-|-\n"}) {
    const std::string hostile = repeated(text, 5'000);
    EXPECT_EQ(markdown(hostile).replaced(Pieces(markdown(hostile).parts(), "x")).empty(), false) << text;
  }
  const std::string wide = repeated("|a", 2000) + "\n" + repeated("|-", 2000) + "\n" + repeated("|b\n", 20'000);
  try {
    markdown(wide);  // md4c 0.5 ends tables with more than 128 columns itself
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the cells and links of the Markdown take more than 64 times its size");
  }
}

}  // namespace
}  // namespace qkv
