// Lists of pieces, and tokenizers whose ids are places in one.
#include "text/pieces/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/errors.h"
#include "tests/support/sentences.h"
#include "text/tokenizer.h"

namespace qkv {
namespace {

using testing::error_of;

using Pieces = std::vector<std::string>;
using Ids = std::vector<int32_t>;

TEST(Vocabulary, GivesThePlaceOfAPiece) {
  const Vocabulary vocabulary({"a", "", "ä\u200C"}, "list");
  EXPECT_EQ(vocabulary.size(), 3);
  EXPECT_EQ(vocabulary.id("ä\u200C"), 2);
  EXPECT_EQ(vocabulary.id(""), 1);
  EXPECT_EQ(vocabulary.id("ä"), std::nullopt);
}

TEST(Vocabulary, RefusesWhatIsNone) {
  const auto error = [](Pieces pieces) { return error_of([&] { Vocabulary(std::move(pieces), "list"); }); };
  EXPECT_EQ(error({}), "list: a vocabulary of 0 pieces, expected 1 to 524288");
  EXPECT_EQ(error({"a", "b", "a"}), "list: pieces 0 and 2 are both \"a\"");
  EXPECT_EQ(error({"a", "\xFF"}), "list: piece 1 is not valid UTF-8");
}

TEST(Pieces, AreReadFromLinesWithTheSpacesOfEach) {
  EXPECT_EQ(pieces_from_lines("a\n b\u00A0\n\nc", "list"), (Pieces{"a", " b\u00A0", "", "c"}));
  EXPECT_EQ(pieces_from_lines("a\r\nb\r\n", "list"), (Pieces{"a", "b"}));
  EXPECT_EQ(pieces_from_lines("a\r\nb\n", "list"), (Pieces{"a\r", "b"}));
  EXPECT_TRUE(pieces_from_lines("", "list").empty());
  EXPECT_EQ(error_of([] { pieces_from_lines(std::string(1 << 19, '\n'), "list"); }),
            "list: more than 524288 lines, too many pieces");
}

TEST(Pieces, ComeBackFromJson) {
  const Pieces pieces = {"a", "\"\n\\", "", "\u2581é"};
  EXPECT_EQ(pieces_from_json(pieces_to_json(pieces), ""), pieces);
  const auto error = [](const char* text) { return error_of([&] { pieces_from_json(text, "v.json"); }); };
  EXPECT_EQ(error("{}"), "v.json: not a JSON array of strings");
  EXPECT_EQ(error("[\"a\", 1]"), "v.json: value 1 is not a string");
}

TEST(TokenizerWithPieces, WithoutASplitterTakesWhatStandsBetweenSpaces) {
  const Tokenizer tokenizer = Tokenizer::with_pieces({}, {"a", "<unk>", "b\u00A0c", ">>de<<"}, "<unk>", "list");
  EXPECT_EQ(tokenizer.encode("  a \tb\u00A0c x a"), (Ids{0, 2, 1, 0}));
  EXPECT_EQ(tokenizer.encode(">>de<<a"), (Ids{3, 0}));
  EXPECT_EQ(tokenizer.encode(">>fr<< a"), (Ids{1, 0}));
  EXPECT_TRUE(tokenizer.encode(" ").empty());
  EXPECT_EQ(tokenizer.decode(Ids{0, 2, 1}), "a b\u00A0c <unk>");
  EXPECT_EQ(tokenizer.piece(3), ">>de<<");
  EXPECT_EQ(tokenizer.id(">>de<<"), 3);
  EXPECT_EQ(tokenizer.id("x"), std::nullopt);
  EXPECT_EQ(tokenizer.unknown(), 1);
  EXPECT_EQ(tokenizer.size(), 4);
  EXPECT_EQ(tokenizer.serialized(), "");
  EXPECT_EQ(error_of([&] { tokenizer.decode(Ids{4}); }), "tokenizer: id 4, expected 0 to 3");
}

TEST(TokenizerWithPieces, WithoutAnUnknownTokenRefusesOtherTokens) {
  const Tokenizer tokenizer = Tokenizer::with_pieces({}, {"a"}, "", "list");
  EXPECT_EQ(tokenizer.encode("a a"), (Ids{0, 0}));
  EXPECT_EQ(error_of([&] { tokenizer.encode("a b"); }),
            "tokenizer: \"b\" is not in the vocabulary, which has no unknown token");
  EXPECT_EQ(error_of([] { Tokenizer::with_pieces({}, {"a"}, "<unk>", "list"); }),
            "list: the unknown token \"<unk>\" is not in the vocabulary");
}

TEST(TokenizerWithPieces, CutsAsTheSplitterDoes) {
  const std::vector<std::string> lines = testing::sentences(300, 1);
  const Tokenizer own = Tokenizer::train(lines, {.vocab_size = 100});
  Pieces pieces;  // the same ones backwards, without the last
  for (int32_t id = own.size() - 1; id-- > 0;) pieces.push_back(own.piece(id));
  const int32_t unknown = own.size() - 2;
  const Tokenizer tokenizer = Tokenizer::with_pieces({{own.serialized(), "m"}}, pieces, "<unk>", "list");
  EXPECT_EQ(tokenizer.serialized(), own.serialized());
  EXPECT_EQ(*tokenizer.own_pieces(), pieces);
  EXPECT_EQ(own.own_pieces(), nullptr);
  for (const std::string& line : lines) {
    Ids wanted = own.encode(line);
    const bool known = std::ranges::count(wanted, own.size() - 1) == 0;
    for (int32_t& id : wanted) id = id == own.size() - 1 ? unknown : own.size() - 2 - id;
    const Ids found = tokenizer.encode(line);
    EXPECT_EQ(found, wanted);
    if (known) {
      EXPECT_EQ(tokenizer.decode(found), line);
    }
  }
}

TEST(Tokenizer, KnowsTheIdOfAPiece) {
  const Tokenizer tokenizer = Tokenizer::train(testing::sentences(300, 1), {.vocab_size = 100});
  for (int32_t id = 0; id < tokenizer.size(); id++) EXPECT_EQ(tokenizer.id(tokenizer.piece(id)), id);
  EXPECT_EQ(tokenizer.id("no such piece"), std::nullopt);
}

}  // namespace
}  // namespace qkv
