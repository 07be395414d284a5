// Texts as sentences with the white space around them, and back.
#include "text/text_sentences.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/random.h"

namespace qkv {
namespace {

std::vector<std::string> sentences_of(std::string_view text) {
  std::vector<std::string> found;
  for (const SpacedSentence& sentence : split_text_sentences(text, {}).sentences) found.emplace_back(sentence.text);
  return found;
}

std::string together(const std::vector<std::pair<std::string, std::string>>& sentences) {
  std::string text;
  for (const auto& [space, sentence] : sentences) append_sentence(text, space, sentence);
  return text;
}

TEST(TextSentences, EndWithTheirLine) {
  EXPECT_EQ(sentences_of("A title\nThe first. The second\r\nends\r\rhere."),
            (std::vector<std::string>{"A title", "The first.", "The second", "ends", "here."}));
  EXPECT_TRUE(sentences_of(" \n\t ").empty());
  EXPECT_TRUE(sentences_of("").empty());
}

TEST(TextSentences, AreAllBytesOfTheText) {
  const std::vector<std::string> parts = {"Ja.",  " ",      "\n",   "\r\n", "\t",   "Mr.",
                                          "好。", "\u3000", "\xff", "x",    "«A»!", "\u00a0"};
  for (uint64_t round = 0; round < 500; round++) {
    Random random(round, Stream::shuffle, 0);
    std::string text, again;
    for (uint64_t n = random.below(20); n > 0; n--) text += parts[random.below(parts.size())];
    const TextSentences split = split_text_sentences(text, {});
    for (const SpacedSentence& sentence : split.sentences) again.append(sentence.space).append(sentence.text);
    EXPECT_EQ(again.append(split.space_after), text);
  }
}

TEST(AppendSentence, KeepsWhiteSpace) {
  EXPECT_EQ(together({{"  ", "One."}, {"\n\n\t", "Two."}, {"  ", "Three."}}), "  One.\n\n\tTwo.  Three.");
  EXPECT_EQ(together({{"", "好。"}, {"\n", "好。"}, {"\u3000", "好。"}}), "好。\n好。\u3000好。");
}

TEST(AppendSentence, SeparatesSentencesAsTheLanguageDoes) {
  EXPECT_EQ(together({{"", "One."}, {"", "Two."}, {" ", "Three."}}), "One. Two. Three.");  // from Chinese
  EXPECT_EQ(together({{"", "一。"}, {" ", "「二。」"}, {"", "三"}}), "一。「二。」三");    // from English
  EXPECT_EQ(together({{"", "他说：“好。”"}, {" ", "然后"}}), "他说：“好。”然后");
  EXPECT_EQ(together({{"", "“Good.”"}, {"", "(Yes.)"}, {"", "No."}}), "“Good.” (Yes.) No.");
}

TEST(AppendSentence, LooksPastMarksForTheLanguage) {
  EXPECT_EQ(together({{"", "他走了……"}, {" ", "然后？"}, {" ", "好——"}, {" ", "走"}}), "他走了……然后？好——走");
  EXPECT_EQ(together({{"", "He left…"}, {"", "Then?"}, {"", "Go!)"}, {"", "2020."}, {"", "x"}}),
            "He left… Then? Go!) 2020. x");
}

TEST(AppendSentence, PutsNoSpaceNextToAnEmptyText) {
  EXPECT_EQ(together({{"", ""}, {" ", "Two."}}), "Two.");
  EXPECT_EQ(together({{"\t", ""}, {" ", "Two."}}), "\tTwo.");
  EXPECT_EQ(together({{"", "One."}, {" ", ""}, {" ", "Two."}, {" ", ""}}), "One. Two.");
  EXPECT_EQ(together({{"", "One."}, {"\n", ""}, {"\n", "Two."}}), "One.\n\nTwo.");
}

}  // namespace
}  // namespace qkv
