// Words of a training text that translate each other.
#include "train/word_pairs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/to_size.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {
namespace {

// Pairs of sentences with two of 40 words, of which each is in some 2.5 % of the pairs, in either order. Every other
// pair has none.
std::string pairs_of_words(int64_t count) {
  const std::vector<std::pair<std::string, std::string>> words = {
      {"dog", "Hund"},      {"cat", "Katze"},     {"house", "Haus"},   {"tree", "Baum"},     {"river", "Fluss"},
      {"bike", "Fahrrad"},  {"street", "Straße"}, {"book", "Buch"},    {"child", "Kind"},    {"water", "Wasser"},
      {"bread", "Brot"},    {"city", "Stadt"},    {"moon", "Mond"},    {"sun", "Sonne"},     {"light", "Licht"},
      {"stone", "Stein"},   {"bird", "Vogel"},    {"horse", "Pferd"},  {"flower", "Blume"},  {"window", "Fenster"},
      {"door", "Tür"},      {"table", "Tisch"},   {"chair", "Stuhl"},  {"letter", "Brief"},  {"train", "Zug"},
      {"ship", "Schiff"},   {"cloud", "Wolke"},   {"rain", "Regen"},   {"snow", "Schnee"},   {"winter", "Winter"},
      {"fire", "Feuer"},    {"road", "Weg"},      {"wood", "Wald"},    {"garden", "Garten"}, {"king", "König"},
      {"queen", "Königin"}, {"glass", "Glas"},    {"paper", "Papier"}, {"field", "Feld"},    {"mountain", "Berg"}};
  std::string text;
  for (int64_t i = 0; i < count; i++) {
    const auto& [a, x] = words[to_size((i * 7 + i / 40) % 40)];
    const auto& [b, y] = words[to_size((i * 11 + i / 13 + 5) % 40)];
    text += "the " + a + " and the " + b + "\tdas " + (i % 2 ? y + " und das " + x : x + " und das " + y) + "\n" +
            "the and the\tdas und das\n";
  }
  return text;
}

WordPairs pairs_in(const std::string& text) {
  const TempFile file("tsv", text);
  return WordPairs(ParallelCorpus({file.path()}));
}

TEST(WordPairsTest, AreFoundInTheText) {
  const WordPairs pairs = pairs_in(pairs_of_words(2000));
  for (const auto& [source, target] : {std::pair{"dog", "hund"}, {"street", "straße"}, {"mountain", "berg"}})
    EXPECT_EQ(pairs.target_of(source), target);
  for (const std::string word : {"the", "and", "zebra", ""}) EXPECT_EQ(pairs.target_of(word), "") << word;
}

TEST(WordPairsTest, OfASentenceAreSingleWords) {
  const WordPairs pairs = pairs_in(pairs_of_words(2000));
  const std::string source = "The Dog and Tom see the bread and the bread", target = "Hund, Brot und Tom";
  const std::vector<WordPair> found = pairs.find(source, target);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(source.substr(found[0].source.begin, 3), "Dog");
  EXPECT_EQ(target.substr(found[0].target.begin, 4), "Hund");
  EXPECT_EQ(source.substr(found[1].source.begin, 3), "Tom");
  EXPECT_EQ(target.substr(found[1].target.begin, 3), "Tom");
}

TEST(WordPairsTest, NamesAndNumbersAreTheSameOnBothSides) {
  const WordPairs none;
  EXPECT_EQ(none.find("In 1984 in Rome", "in Rome 1984").size(), 2u);
  EXPECT_EQ(none.find("It was in Rome", "Es war in Roma").size(), 0u);
  EXPECT_EQ(none.find("TOM", "Tom").size(), 0u);
  EXPECT_EQ(none.find("", "").size(), 0u);
}

TEST(WordPairsTest, OfAShortOrUnspacedTextAreNone) {
  EXPECT_EQ(pairs_in("a dog\tein Hund\na dog\tein Hund\n").size(), 0u);
  std::string text;
  for (int i = 0; i < 50; i++) text += "犬が見える\t狗看見了\n";
  EXPECT_EQ(pairs_in(text).size(), 0u);
}

}  // namespace
}  // namespace qkv::testing
