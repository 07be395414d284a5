#include "text/alignment/aligned_units.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

// The text of each token between bars.
std::string placed(std::string_view text, const std::vector<std::string>& tokens) {
  std::string all = "|";
  for (const TokenPlace& place : token_places(text, tokens))
    all += std::string(text.substr(place.begin, place.end - place.begin)) + "|";
  return all;
}

TEST(TokenPlaces, PiecesOfAllSpellingsAreFound) {
  EXPECT_EQ(placed("Two dogs, run.", {"▁Two", "▁", "dog", "s", ",", "▁run", ".", "</s>"}), "|Two||dog|s|,|run|.||");
  EXPECT_EQ(placed("unseen dogs , run", {"un@@", "seen", "dogs", ",", "run"}), "|un|seen|dogs|,|run|");
  EXPECT_EQ(placed("été à", {"Ã©", "tÃ©", "ĠÃł"}), "|é|té|à|");
  EXPECT_EQ(placed("unseen dogs", {"un", "##seen", "dogs"}), "|un|seen|dogs|");
  EXPECT_EQ(placed("I ## @@", {"I", "##", "@@"}), "|I|##|@@|");
}

TEST(TokenPlaces, CaseAndCompatibleCharactersMayDiffer) {
  EXPECT_EQ(placed("ÉTÉ  ﬁne … ½", {"▁été", "▁f", "ine", "▁...", "▁1", "⁄", "2"}), "|ÉTÉ|ﬁ|ne|…|½|||");
  EXPECT_EQ(placed("e\u0301te\u0301", {"▁\u00E9", "t\u00E9"}), "|e\u0301|te\u0301|");
}

TEST(TokenPlaces, TokensWithoutTheirTextHaveWhatIsBetweenTheirNeighbours) {
  EXPECT_EQ(placed("Two 猫猫 run", {">>de<<", "▁Two", "▁", "<unk>", "▁run"}), "||Two||猫猫|run|");
  EXPECT_EQ(placed("猫 run 犬", {"▁", "<unk>", "▁run", "▁", "<unk>"}), "||猫|run||犬|");
  EXPECT_EQ(placed("one two one", {"▁two"}), "|two|");
  EXPECT_EQ(placed("", {"▁a"}), "||");
  EXPECT_EQ(placed("a b", {"▁x", "▁y", "▁b"}), "|a||b|");
  EXPECT_EQ(placed("½ cup of 100", {"▁?", "▁cup", "▁of", "▁100"}), "|½|cup|of|100|");
}

}  // namespace
}  // namespace qkv
