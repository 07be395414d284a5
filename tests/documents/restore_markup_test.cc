#include "documents/restore_markup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "documents/html.h"
#include "documents/subtitles.h"
#include "tests/documents/translations.h"

namespace qkv {
namespace {

using Pieces = std::vector<std::string>;
using testing::translation;

// The first part of the HTML, translated.
std::string put_html(const std::string& html, const Translation& translated) {
  const SplitText document = split_html(html);
  return restore_markup(document, document.parts.at(0), translated);
}

TEST(PutBack, ElementsEncloseTheTranslationOfTheirWords) {
  const Translation house = translation({"▁the", "▁red", "▁house", "</s>"}, {"▁la", "▁casa", "▁roja"}, {0, 2, 1});
  EXPECT_EQ(put_html("the <b>red</b> house", house), "la casa <b>roja</b>");
  EXPECT_EQ(put_html("the <b>red</b> <i>house</i>", house), "la <i>casa</i> <b>roja</b>");
  EXPECT_EQ(put_html("the <b>red house</b>", house), "la <b>casa roja</b>");
  EXPECT_EQ(put_html("the <b><i>red</i> house</b>", house), "la <b>casa <i>roja</i></b>");
  EXPECT_EQ(put_html("the <a><b>red house</b></a>", house), "la <a><b>casa roja</b></a>");
  EXPECT_EQ(put_html("<b>the</b> red house", house), "<b>la</b> casa roja");
}

TEST(PutBack, TokensOfASourcePrefixAreNotThoseOfTheText) {
  const Pieces prefix = {"▁translate", "▁English", "▁to", "▁German", ":"};
  const auto with_prefix = [&](const Pieces& sources, const Pieces& target, const std::vector<int32_t>& aligned) {
    Translation translated = translation(sources, target, aligned);
    translated.source_prefix = "translate English to German: ";
    return translated;
  };
  Pieces one = prefix;
  for (const char* token : {"▁I", "▁want", "▁to", "▁go", "</s>"}) one.emplace_back(token);
  const Translation go = with_prefix(one, {"▁ich", "▁gehe", "▁zu"}, {5, 8, 7});
  EXPECT_EQ(put_html("I want <b>to</b> go", go), "ich gehe <b>zu</b>");
  EXPECT_EQ(put_html("I want to <b>go</b>", go), "ich <b>gehe</b> zu");

  Pieces two = one;  // each sentence has the prefix
  two.insert(two.end(), prefix.begin(), prefix.end());
  for (const char* token : {"▁We", "▁want", "▁to", "▁English", "</s>"}) two.emplace_back(token);
  const Translation both = with_prefix(two, {"▁A", "▁B", "▁C", "▁D"}, {5, 8, 15, 18});
  EXPECT_EQ(put_html("I want to go We want to <b>English</b>", both), "A B C <b>D</b>");
  EXPECT_EQ(put_html("I want to <i>go</i> <b>We</b> want to English", both), "A <i>B</i> <b>C</b> D");
}

TEST(PutBack, MarksNextToAnElementStayOutside) {
  const Translation hello =
      translation({"▁Hello", ",", "▁wor", "ld", "!", "</s>"}, {"▁Hall", "o", ",", "▁Welt", "!"}, {0, 0, 1, 2, 4});
  EXPECT_EQ(put_html("<b>Hello</b>, world!", hello), "<b>Hallo</b>, Welt!");
  EXPECT_EQ(put_html("Hello, <a href=\"x\">world</a>!", hello), "Hallo, <a href=\"x\">Welt</a>!");
  EXPECT_EQ(put_html("Hello, <a>world!</a>", hello), "Hallo, <a>Welt!</a>");
  EXPECT_EQ(put_html("Hello, w<b>o</b>rld!", hello), "Hallo, <b>Welt</b>!");  // words are not divided
  EXPECT_EQ(put_html("<b>H</b>ello, world!", hello), "<b>Hallo</b>, Welt!");
}

TEST(PutBack, SingleTagsStandBetweenTheSameWords) {
  const Translation dogs =
      translation({"▁Two", "▁dogs", "▁run", "."}, {"▁Zwei", "▁Hunde", "▁laufen", "."}, {0, 1, 2, 3});
  EXPECT_EQ(put_html("Two dogs<br>run.", dogs), "Zwei Hunde<br>laufen.");
  EXPECT_EQ(put_html("Two dogs <br> run.", dogs), "Zwei Hunde <br> laufen.");
  EXPECT_EQ(put_html("Two <img src=a>dogs run<sup></sup>.", dogs), "Zwei <img src=a>Hunde laufen<sup></sup>.");
  EXPECT_EQ(put_html("Two <code>a  b</code> dogs run <!-- c -->.", dogs),
            "Zwei <code>a  b</code> Hunde laufen <!-- c -->.");
  EXPECT_EQ(put_html("Two<wbr>dogs run <i translate=no>x</i>.", dogs), "Zwei <wbr>Hunde laufen <i translate=no>x</i>.");
}

TEST(PutBack, ATagBeforeAMarkDoesNotTouchAWord) {
  EXPECT_EQ(put_html("Use <code>x</code>, then", translation({"▁Use", ",", "▁then"}, {"▁Nutze", "▁dann"}, {0, 2})),
            "Nutze <code>x</code> dann");
  EXPECT_EQ(put_html("Use <code>x</code>, then", translation({"▁Use", ",", "▁then"}, {"▁Nutze", ",", "▁x"}, {0, 1, 2})),
            "Nutze <code>x</code>, x");
}

TEST(PutBack, ATagInBracketsDoesNotTouchAWordWithoutThem) {
  const Pieces source = {"▁The", "▁option", "▁(", ")", "▁is"};
  const std::string html = "The option (<code>-m</code>) is";
  EXPECT_EQ(put_html(html, translation(source, {"▁Die", "▁Option", "▁ist"}, {0, 1, 4})),
            "Die Option <code>-m</code> ist");
  EXPECT_EQ(put_html(html, translation(source, {"▁ist", "▁die", "▁Option"}, {4, 0, 1})),
            "ist die Option <code>-m</code>");
  EXPECT_EQ(put_html(html, translation(source, {"▁Die", "▁Option", "▁(", ")", "▁ist"}, {0, 1, 2, 3, 4})),
            "Die Option (<code>-m</code>) ist");
}

TEST(PutBack, TheSpaceBehindASingleTagIsOutsideOfTheElementThatEndsThere) {
  EXPECT_EQ(put_html("<i>Often (with <code>x</code>)</i> now",
                     translation({"▁Often", "▁(", "with", ")", "▁now"}, {"▁mit", ")", "▁(", "oft", "▁jetzt"},
                                 {2, 3, 1, 0, 4})),
            "<i>mit) (oft <code>x</code></i> jetzt");
}

TEST(PutBack, WhiteSpaceInAnElementStandsForASpaceOfTheTranslation) {
  const Translation ab = translation({"▁A.", "▁B."}, {"▁X.", "▁Y."}, {0, 1});
  EXPECT_EQ(put_html("A.<span> </span>B.", ab), "X.<span> </span>Y.");
  EXPECT_EQ(put_html("A. <span> </span>B.", ab), "X. <span> </span>Y.");
}

// A footnote: a part within a tag of another one.
TEST(PutBack, PartsWithinATagAreReplacedInIt) {
  SplitText document = {.bytes = "a b{c d} e f"};
  document.parts.push_back(
      {.begin = 0, .end = 12, .text = "a b e f", .tags = {{.at = 3, .begin = 3, .end = 8, .space_after = true}}});
  document.parts.push_back({.begin = 4, .end = 7, .text = "c d"});
  const std::vector<std::string> replacements = {"", "x"};
  const Translation other = translation({"▁a", "▁b", "▁e", "▁f"}, {"▁A", "▁B", "▁E", "▁F"}, {0, 1, 2, 3});
  const Translation same = translation({"▁a", "▁b", "▁e", "▁f"}, {"▁a", "▁b", "▁e", "▁f"}, {});
  EXPECT_EQ(restore_markup(document, document.parts[0], other, 0, replacements), "A B{x} E F");
  EXPECT_EQ(restore_markup(document, document.parts[0], same, 0, replacements), "a b{x} e f");
  EXPECT_EQ(restore_markup(document, document.parts[0], other), "A B{c d} E F");
  EXPECT_EQ(join(document, std::vector<std::string>{"y", "x"}), "y");  // which has the part within it
}

TEST(PutBack, ASpaceStaysNextToASingleTagThatMovesToAnEnd) {
  EXPECT_EQ(put_html("A <code>x</code> dog", translation({"▁A", "▁dog"}, {"▁Hund", "▁a"}, {1, 0})),
            "<code>x</code> Hund a");
  EXPECT_EQ(put_html("Dogs <code>x</code> a", translation({"▁Dogs", "▁a"}, {"▁a", "▁Hunde"}, {1, 0})),
            "a Hunde <code>x</code>");
}

TEST(PutBack, SpecialCharactersAreEscaped) {
  EXPECT_EQ(put_html("<b>a</b> &lt; b", translation({"▁a", "▁<", "▁b"}, {"▁x&y", "▁<", "▁z\u00A0>"}, {0, 1, 2})),
            "<b>x&amp;y</b> &lt; z&nbsp;&gt;");
  EXPECT_EQ(put_html("&eacute;&#x21; <b>b</b>", translation({"▁é", "!", "▁b"}, {"▁é", "!", "▁b"}, {})),
            "&eacute;&#x21; <b>b</b>");  // the same text keeps its bytes
}

TEST(PutBack, AFewWrongAlignmentsDoNotWidenAnElement) {
  const Pieces source = {"▁I", "▁see", "▁the", "▁red", "▁house", "▁over", "▁there", "."};
  const Pieces target = {"▁Ich", "▁sehe", "▁das", "▁rote", "▁Haus", "▁dort", "▁drüben", "."};
  EXPECT_EQ(put_html("I see the <b>red house</b> over there.", translation(source, target, {4, 1, 2, 3, 4, 5, 6, 4})),
            "Ich sehe das <b>rote Haus</b> dort drüben.");
  EXPECT_EQ(put_html("I see<br>the red house over there.", translation(source, target, {5, 1, 2, 3, 4, 5, 6, 7})),
            "Ich sehe<br>das rote Haus dort drüben.");
}

TEST(PutBack, AnElementWhoseWordsAreNotAlignedTakesTheNextFreeUnit) {
  const Translation good = translation({"▁very", "▁good", "."}, {"▁gut", "."}, {1, 2});
  EXPECT_EQ(put_html("<a>very</a> good.", good), "<a>gut</a>.");
  EXPECT_EQ(put_html("<a>very</a> <b>good</b>.", good), "<a></a><b>gut</b>.");
  EXPECT_EQ(put_html("<a>very</a> <b>good</b>.", translation({"▁very", "▁good", "."}, {}, {})), "<a></a><b></b>");
}

TEST(PutBack, TagsWithoutAPartnerKeepTheirOrder) {
  const Translation abc = translation({"▁A", "▁B", "▁C"}, {"▁z", "▁x", "▁y"}, {2, 0, 1});
  EXPECT_EQ(put_html("A <b>B <i>C</b></i> x", abc), "<b>z x y<i></b></i>");
  EXPECT_EQ(put_html("A</b> B <i>C", translation({"▁A", "▁B", "▁C"}, {"▁x", "▁y", "▁z"}, {0, 1, 2})), "x</b> y <i>z");
}

TEST(PutBack, WithoutAnAlignmentTokensHaveTheOrderOfTheSource) {
  EXPECT_EQ(put_html("one <b>two</b> three", translation({"▁one", "▁two", "▁three"}, {"▁eins", "▁zwei", "▁drei"}, {})),
            "eins <b>zwei</b> drei");
}

TEST(PutBack, TokensOfOtherVocabulariesAreFound) {
  Translation marian = translation({"un@@", "seen", "Dogs", "&", "<unk>", "run", "."}, {}, {});
  marian.hypotheses[0].text = "Ungesehene Hunde & 猫 laufen.";
  marian.hypotheses[0].tokens = {"Unge@@", "sehene", "Hunde", "&", "<unk>", "lau@@", "fen", "."};
  for (int32_t t = 0; t < 8; t++) marian.hypotheses[0].alignment.push_back({std::array{0, 1, 2, 3, 4, 5, 5, 6}[t], t});
  EXPECT_EQ(put_html("unseen <b>Dogs</b> &amp; <i>猫</i> <u>run</u>.", marian),
            "Ungesehene <b>Hunde</b> &amp; <i>猫</i> <u>laufen</u>.");
  Translation bytes = translation({"A", "Ġdog"}, {}, {});
  bytes.hypotheses[0].text = "Ein Hund";
  bytes.hypotheses[0].tokens = {"Ein", "ĠHund"};
  bytes.hypotheses[0].alignment = {{0, 0}, {1, 1}};
  EXPECT_EQ(put_html("A <b>dog</b>", bytes), "Ein <b>Hund</b>");
  EXPECT_EQ(put_html("ＡＢＣ <b>ﬁne</b>", translation({"▁ABC", "▁fi", "ne"}, {"▁日本", "▁語"}, {0, 1})),
            "日本 <b>語</b>");  // compatible characters
}

// Random trees of tags and random alignments: every tag once, and elements nested as in the source.
TEST(PutBack, TagsAreNeverLostDuplicatedOrCrossed) {
  std::minstd_rand random(7);
  for (int round = 0; round < 500; round++) {
    std::string html = "w";
    Pieces source = {"▁w"}, target;
    std::vector<int32_t> sources;
    std::vector<int> open;
    int count = 0;
    for (int i = 0; i < 20; i++) {
      if (random() % 3 == 0) open.push_back(count++), html += " <t" + std::to_string(open.back()) + ">";
      if (random() % 4 == 0) html += " <img id=" + std::to_string(count++) + ">";
      html += " w", source.push_back("▁w");
      if (random() % 3 == 0 && !open.empty()) html += "</t" + std::to_string(open.back()) + ">", open.pop_back();
    }
    while (!open.empty()) html += "</t" + std::to_string(open.back()) + ">", open.pop_back();
    html += " w", source.push_back("▁w");
    for (size_t t = 0; t < 1 + random() % 30; t++) {
      target.push_back(random() % 3 ? "▁z" : ".");
      sources.push_back(static_cast<int32_t>(random() % (source.size() + 3)) - 2);
    }
    const std::string put = put_html(html, translation(source, target, sources));
    const auto tags = [](const std::string& text) {
      std::vector<std::string> all, stack;
      for (size_t at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
        std::string tag = text.substr(at, text.find('>', at) + 1 - at);
        if (tag.starts_with("<t")) {
          stack.push_back(tag);
        } else if (tag.starts_with("</")) {
          EXPECT_FALSE(stack.empty() || stack.back() != "<" + tag.substr(2)) << text;
          if (!stack.empty()) stack.pop_back();
        }
        // With the elements around it, so that these must be the same.
        for (const std::string& around : stack) tag += around;
        all.push_back(tag);
      }
      EXPECT_TRUE(stack.empty()) << text;
      std::ranges::sort(all);
      return all;
    };
    ASSERT_EQ(tags(put), tags(html)) << html << "\n" << put;
  }
}

TEST(PutBack, DeepNestingKeepsTheOrderOfTheTags) {
  std::string opens, closes;
  for (int i = 0; i < 10'000; i++) opens += "<b>", closes += "</b>";
  EXPECT_EQ(
      put_html("A " + opens + "B" + closes + " C", translation({"▁A", "▁B", "▁C"}, {"▁x", "▁y", "▁z"}, {0, 1, 2})),
      "x " + opens + "y" + closes + " z");
}

}  // namespace
}  // namespace qkv
