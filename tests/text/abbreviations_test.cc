// Abbreviations that are learned from a text and read from a file.
#include "text/abbreviations.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/random.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using List = std::vector<std::string>;

void add_all(AbbreviationCounter& counter, std::initializer_list<std::string_view> lines, int times) {
  for (int i = 0; i < times; i++)
    for (const std::string_view line : lines) counter.add(line);
}

TEST(AbbreviationCounter, FindsShortWordsThatHaveAFullStop) {
  AbbreviationCounter counter;
  add_all(counter,
          {"die Abt. Kunst und die Abt. Musik sind hier.", "der Kgl. Hof (inkl. Garten) ist am Ort.",
           "wir waren am Ort.", "der Ort ist schön und alt.", "u.a. kam er mit dem Hund."},
          20);
  EXPECT_EQ(counter.abbreviations(), (List{"abt", "inkl", "kgl", "u.a"}));
}

TEST(AbbreviationCounter, IgnoresTheEndOfALine) {
  AbbreviationCounter counter;
  add_all(counter, {"he is ill.", "she got it.", "the cat is here"}, 50);
  EXPECT_TRUE(counter.abbreviations().empty());
}

TEST(AbbreviationCounter, IgnoresTheEndsOfSentencesWithinALine) {
  AbbreviationCounter counter;
  add_all(counter, {"he is ill. The cat is here", "she got wet.\ter ist krank.\tja"}, 50);
  EXPECT_TRUE(counter.abbreviations().empty());
}

TEST(AbbreviationCounter, IgnoresNumbersAndWhatIsNoWord) {
  AbbreviationCounter counter;
  add_all(counter, {"am 3. Mai ... und a@b. dann \xFF\xFE. so weiter", "wir gehen nach Haus und essen dort"}, 50);
  EXPECT_TRUE(counter.abbreviations().empty());
}

TEST(AbbreviationCounter, FindsNothingInAnEmptyText) {
  AbbreviationCounter counter;
  counter.add("");
  EXPECT_TRUE(counter.abbreviations().empty());
}

TEST(AbbreviationCounter, KeepsFrequentWordsOfAVeryLargeVocabulary) {
  AbbreviationCounter counter;
  Random random(1, Stream::test);
  const auto word = [&] {
    std::string letters;
    for (int i = 0; i < 6; i++) letters += static_cast<char>('a' + random.below(26));
    return letters;
  };
  for (int i = 0; i < 300'000; i++) counter.add("the Abt. of " + word() + " " + word());
  EXPECT_EQ(counter.abbreviations(), List{"abt"});
}

TEST(ReadAbbreviations, TakesWordsWithAndWithoutAFullStop) {
  const testing::TempFile list("list", "abt.\n\n u.a \r\nKgl\n");
  EXPECT_EQ(read_abbreviations(list.path()), (List{"abt", "u.a", "Kgl"}));
}

TEST(ReadAbbreviations, RefusesWhatIsNoAbbreviation) {
  const testing::TempFile two("two", "abt.\nz. B.\n"), large("large", std::string(65, 'a'));
  EXPECT_EQ(testing::error_of([&] { read_abbreviations(two.path()); }),
            two.path() + ": line 2 has 2 words, expected one abbreviation");
  EXPECT_EQ(testing::error_of([&] { read_abbreviations(large.path()); }),
            large.path() + ": line 1 has 65 bytes, expected an abbreviation of at most 64");
  const testing::TempFile huge("huge", "");
  std::filesystem::resize_file(huge.path(), (1 << 24) + 1);
  EXPECT_EQ(testing::error_of([&] { read_abbreviations(huge.path()); }),
            huge.path() + ": has more than 16777216 bytes");
}

}  // namespace
}  // namespace qkv
