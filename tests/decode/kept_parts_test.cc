#include "decode/terms/kept_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace qkv {
namespace {

// Takes what stands between ‹ and › out of a sentence.
ReducedText reduced(std::string_view marked, bool in_lower_case = false) {
  constexpr std::string_view kOpen = "‹", kClose = "›";
  std::string sentence;
  std::vector<ProtectedPart> parts;
  for (size_t i = 0; i < marked.size();) {
    if (marked.substr(i).starts_with(kOpen)) {
      parts.push_back({sentence.size(), 0});
      i += kOpen.size();
    } else if (marked.substr(i).starts_with(kClose)) {
      parts.back().end = sentence.size();
      i += kClose.size();
    } else {
      sentence += marked[i++];
    }
  }
  return take_out(sentence, parts, in_lower_case);
}

// Returns the rest with a bar and the part at each place.
std::string rest_of(std::string_view marked, bool in_lower_case = false) {
  ReducedText all = reduced(marked, in_lower_case);
  for (size_t k = all.kept.size(); k-- > 0;) all.text.insert(all.kept[k].at, "|" + all.kept[k].text + "|");
  return all.text;
}

TEST(TakeOutParts, SpacesAroundAPartBecomeOne) {
  EXPECT_EQ(rest_of("Go to ‹x.org› now."), "Go to|x.org| now.");
  EXPECT_EQ(rest_of("‹x.org› is down."), "|x.org|is down.");
  EXPECT_EQ(rest_of("Go to ‹x.org›."), "Go to|x.org|.");
  EXPECT_EQ(rest_of("Go to ‹x.org›"), "Go to|x.org|");
  EXPECT_EQ(rest_of("Hello ‹{name}›, go."), "Hello|{name}|, go.");
  EXPECT_EQ(rest_of("It has ‹{n}›px."), "It has |{n}|px.");
  EXPECT_EQ(rest_of("No part."), "No part.");
}

TEST(TakeOutParts, BracketsAndQuotationMarksGoWithTheirPart) {
  EXPECT_EQ(rest_of("Go (‹x.org›) now."), "Go|(x.org)| now.");
  EXPECT_EQ(rest_of("Press „‹F1›“ twice."), "Press|„F1“| twice.");
  EXPECT_EQ(rest_of("Press (\"‹F1›\")."), "Press|(\"F1\")|.");
  EXPECT_EQ(rest_of("Go (to ‹x.org›) now."), "Go (to|x.org|) now.");
}

TEST(TakeOutParts, MarksBetweenTwoPartsGoWithThem) {
  EXPECT_EQ(rest_of("From ‹a›, ‹b› - ‹c› and ‹d›."), "From|a, b - c| and|d|.");
  EXPECT_EQ(rest_of("‹a› ‹b›"), "|a b|");
}

TEST(TakeOutParts, PartsThatWidenOverEachOtherAreOne) {
  EXPECT_EQ(rest_of("see (‹\"›‹%s›\") now"), "see|(\"%s\")| now");
  EXPECT_EQ(rest_of("‹a› b‹\"›‹\"›‹%s›\"\" now"), "|a|b|\"\"%s\"\"| now");
}

TEST(TakeOutParts, TheRestMayGetLowerCase) {
  EXPECT_EQ(rest_of("Go To ‹X.org› NOW", true), "go to|X.org| now");
  EXPECT_EQ(rest_of("İ ‹X› Y", true), "i̇|X| y");
}

Hypothesis translation_of(std::string text, std::vector<std::string> tokens, std::vector<Alignment> alignment) {
  Hypothesis h;
  h.text = std::move(text);
  h.tokens = std::move(tokens);
  h.alignment = std::move(alignment);
  h.token_scores.assign(h.tokens.size() + 1, -1);
  return h;
}

// The translation of "Please visit … today." with the words in another order.
Hypothesis reordered() {
  return translation_of("Heute bitte besuchen.", {"▁Heute", "▁bitte", "▁besuch", "en", "."},
                        {{2, 0}, {0, 1}, {1, 2}, {1, 3}, {3, 4}});
}
const std::vector<std::string> kSource = {"▁Please", "▁visit", "▁today", ".", "</s>"};

TEST(PutBackParts, APartStandsWhereTheWordsAroundItAre) {
  const ReducedText rest = reduced("Please ‹x.org› visit today.");
  Hypothesis h = reordered();
  put_back(rest.kept, rest.text, kSource, false, h);
  EXPECT_EQ(h.text, "Heute bitte x.org besuchen.");
  EXPECT_EQ(h.tokens, (std::vector<std::string>{"▁Heute", "▁bitte", "x.org", "▁besuch", "en", "."}));
  EXPECT_EQ(h.token_scores, (std::vector<double>{-1, -1, 0, -1, -1, -1, -1}));
  EXPECT_EQ(h.alignment, (std::vector<Alignment>{{3, 0}, {0, 1}, {1, 2}, {2, 3}, {2, 4}, {4, 5}}));
  EXPECT_EQ(tokens_with(rest.kept, rest.text, kSource),
            (std::vector<std::string>{"▁Please", "x.org", "▁visit", "▁today", ".", "</s>"}));
}

TEST(PutBackParts, WordsHaveThePartsInTheirPlaces) {
  const ReducedText rest = reduced("Please ‹a› visit ‹b› today.");
  Hypothesis h = translation_of("Bitte besuchen heute.", {"▁Bitte", "▁besuch", "en", "▁heute", "."},
                                {{0, 0}, {1, 1}, {1, 2}, {2, 3}, {3, 4}});
  h.words = {{"Bitte", -1}, {"besuchen", -2}, {"heute.", -2}};
  put_back(rest.kept, rest.text, kSource, false, h);
  std::vector<std::string> words;
  for (const WordScore& word : h.words) words.push_back(word.word);
  EXPECT_EQ(words, (std::vector<std::string>{"Bitte", "a", "besuchen", "b", "heute."}));
  EXPECT_EQ(h.text, "Bitte a besuchen b heute.");
}

TEST(PutBackParts, PartsAtTheEndsAndNextToMarks) {
  const auto text = [](std::string_view marked) {
    const ReducedText rest = reduced(marked);
    Hypothesis h = translation_of("Bitte besuchen, heute.", {"▁Bitte", "▁besuchen", ",", "▁heute", "."},
                                  {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}});
    put_back(rest.kept, rest.text, {"▁Please", "▁visit", ",", "▁today", "."}, false, h);
    return h.text;
  };
  EXPECT_EQ(text("‹x.org› Please visit, today."), "x.org Bitte besuchen, heute.");
  EXPECT_EQ(text("Please visit ‹x.org›, today."), "Bitte besuchen x.org, heute.");
  EXPECT_EQ(text("Please visit, today ‹x.org›."), "Bitte besuchen, heute x.org.");
  EXPECT_EQ(text("Please visit, today. ‹x.org›"), "Bitte besuchen, heute. x.org");
  EXPECT_EQ(text("Please ‹a› visit, ‹b› today ‹c›."), "Bitte a besuchen, b heute c.");
}

TEST(PutBackParts, PartsAtOnePlaceKeepTheirOrder) {
  const ReducedText rest = reduced("Please ‹a› kindly ‹b› visit.");
  Hypothesis h = translation_of("Besuchen.", {"▁Besuchen", "."}, {{2, 0}, {3, 1}});
  put_back(rest.kept, rest.text, {"▁Please", "▁kindly", "▁visit", "."}, false, h);
  EXPECT_EQ(h.text, "a b Besuchen.");
  EXPECT_EQ(h.tokens, (std::vector<std::string>{"a", "b", "▁Besuchen", "."}));
}

TEST(PutBackParts, AnEmptyTranslationIsTheParts) {
  const ReducedText rest = reduced("Please ‹a› visit ‹b›.");
  Hypothesis h = translation_of("", {}, {});
  put_back(rest.kept, rest.text, {"▁Please", "▁visit", "."}, false, h);
  EXPECT_EQ(h.text, "a b");
}

TEST(PutBackParts, AttentionHasARowAndAColumnForAPart) {
  const ReducedText rest = reduced("Please ‹a› visit");
  Hypothesis h = translation_of("Bitte besuchen", {"▁Bitte", "▁besuchen"}, {{0, 0}, {1, 1}});
  h.attention = {{0.75, 0.25}, {0.5, 0.5}};
  put_back(rest.kept, rest.text, {"▁Please", "▁visit"}, true, h);
  EXPECT_EQ(h.attention, (std::vector<std::vector<float>>{{0.75, 0, 0.25}, {0, 1, 0}, {0.5, 0, 0.5}}));
}

TEST(PutBackParts, AnOpeningMarkIsApartFromAPartAtTheStart) {
  const ReducedText rest = reduced("‹a› (b) c");
  EXPECT_EQ(rest.text, "(b) c");
  Hypothesis h = translation_of("„B“ c", {"▁„", "B", "“", "▁c"}, {{0, 0}, {1, 1}, {2, 2}, {3, 3}});
  put_back(rest.kept, rest.text, {"▁(", "b", ")", "▁c"}, false, h);
  EXPECT_EQ(h.text, "a „B“ c");
}

TEST(PutBackParts, AnEndTokenStaysBehind) {
  const ReducedText rest = reduced("Please visit ‹a›");
  Hypothesis h = translation_of("Bitte besuchen", {"▁Bitte", "▁besuchen", "</s>"}, {{0, 0}, {1, 1}, {2, 2}});
  h.token_scores.pop_back();
  put_back(rest.kept, rest.text, {"▁Please", "▁visit", "</s>"}, false, h);
  EXPECT_EQ(h.text, "Bitte besuchen a");
  EXPECT_EQ(h.tokens, (std::vector<std::string>{"▁Bitte", "▁besuchen", "a", "</s>"}));
  EXPECT_EQ(h.token_scores.size(), 4u);
}

}  // namespace
}  // namespace qkv
