// Long lines cut into parts that fit.
#include "text/split_long.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/support/errors.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using Sentences = std::vector<std::string>;

Sentences split(std::string_view line, size_t most) {
  return split_long(line, [&](std::string_view part) { return part.size() <= most; });
}

TEST(SplitText, LeavesAShortLineWhole) {
  EXPECT_EQ(split("One. Two.", 9), Sentences{"One. Two."});
  EXPECT_EQ(split("", 9), Sentences{""});
}

TEST(SplitText, CutsAfterSentences) {
  EXPECT_EQ(split("One, two. Three! Four?", 17), (Sentences{"One, two. Three! ", "Four?"}));
  EXPECT_EQ(split("He said: “Go.” She went.", 22), (Sentences{"He said: “Go.” ", "She went."}));
  EXPECT_EQ(split("Wait... Then 3.14 is pi", 20), (Sentences{"Wait... ", "Then 3.14 is pi"}));
}

TEST(SplitText, CutsScriptsWithoutSpacesAfterSentences) {
  EXPECT_EQ(split("你好。「再见！」谢谢", 30), Sentences{"你好。「再见！」谢谢"});
  EXPECT_EQ(split("你好。「再见！」谢谢", 28), (Sentences{"你好。「再见！」", "谢谢"}));
  EXPECT_EQ(split("你好，再见吧", 14), (Sentences{"你好，", "再见吧"}));
}

TEST(SplitText, CutsAfterClausesWhereNoSentenceEnds) {
  EXPECT_EQ(split("one two, three four", 15), (Sentences{"one two, ", "three four"}));
  EXPECT_EQ(split("one—two three", 11), (Sentences{"one—", "two three"}));
}

TEST(SplitText, CutsAtSpacesWhereNoClauseEnds) {
  EXPECT_EQ(split("one two three", 9), (Sentences{"one two ", "three"}));
}

TEST(SplitText, CutsBetweenCharactersWhereThereIsNoSpace) {
  EXPECT_EQ(split("äöüäöü", 5), (Sentences{"äö", "üä", "öü"}));
}

TEST(SplitText, RefusesACharacterThatDoesNotFit) {
  EXPECT_EQ(testing::error_of([] { split("aä", 1); }),
            "split: the character at byte 2 of the line is longer than the limit alone");
}

TEST(SplitText, LosesNothingAndFitsAlways) {
  const Sentences tokens = {"a", "word", " ", "  ", ".", "! ", ", ", "é", "日", "。", "😀", "—", "”", "\u00A0", "3.5"};
  Random random(1, Stream::test);
  for (int trial = 0; trial < 300; trial++) {
    std::string line;
    for (uint64_t n = random.below(60); n > 0; n--) line += tokens[random.below(tokens.size())];
    const size_t most = 4 + random.below(30);
    std::string joined;
    for (const std::string& part : split(line, most)) {
      EXPECT_LE(part.size(), most);
      EXPECT_EQ(find_invalid_utf8(part), std::string_view::npos);
      joined += part;
    }
    EXPECT_EQ(joined, line);
  }
}

TEST(SplitText, FitsEvenWhereLongerTextsHaveFewerTokens) {
  const auto fits = [](std::string_view part) { return part.size() % 7 != 5 && part.size() < 40; };
  std::string line;
  for (int i = 0; i < 200; i++) line += i % 9 == 8 ? ". " : i % 5 == 4 ? " " : "x";
  std::string joined;
  for (const std::string& part : split_long(line, fits)) {
    EXPECT_TRUE(fits(part));
    joined += part;
  }
  EXPECT_EQ(joined, line);
}

TEST(SplitText, AsksOnlyAboutShortTexts) {
  const std::string line(100'000, 'x');
  size_t asked = 0;
  split_long(line, [&](std::string_view part) {
    asked += part.size() < line.size() ? part.size() : 0;
    return part.size() <= 100;
  });
  EXPECT_LT(asked, 20 * line.size());  // 7 steps up to 128, 6 to halve a gap of 64: each at most 128 of 100 characters
}

}  // namespace
}  // namespace qkv
