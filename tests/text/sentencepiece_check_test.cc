// Models from outside that are cut, corrupt or made to harm.
#include "text/pieces/sentencepiece_check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>

#include "core/random.h"
#include "tests/support/errors.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/support/sentences.h"
#include "text/tokenizer.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::sentences;
using testing::spm::field;
using testing::spm::little_endian;
using testing::spm::piece;
using testing::spm::Trie;
using testing::spm::with_charsmap;
using testing::spm::with_pieces;

std::string refusal(const std::string& model) {
  return error_of([&] { Tokenizer::from_serialized(model, "m.spm"); });
}

TEST(SentencePieceCheck, AcceptsAHandMadeModel) {
  const Tokenizer tokenizer = Tokenizer::from_serialized(with_pieces(piece("▁", 1, -1) + piece("a", 1, -2)), "m.spm");
  EXPECT_EQ(tokenizer.size(), 5);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aa")), "aa");
}

TEST(SentencePieceCheck, NeedsAnEndToken) {
  EXPECT_EQ(refusal(piece("<unk>", 2) + piece("<s>", 3) + piece("a") + field(2, "") + field(3, "")),
            "m.spm: the vocabulary has no end token </s>");
}

TEST(SentencePieceCheck, StartsWithTheEndTokenWhereThereIsNoStart) {
  const std::string model = piece("<unk>", 2) + piece("</s>", 3) + piece("a") + field(2, "") + field(3, "");
  EXPECT_EQ(Tokenizer::from_serialized(model, "m.spm").start(), 1);
}

TEST(SentencePieceCheck, RefusesPiecesThatSentencePieceCannotHold) {
  EXPECT_EQ(refusal(with_pieces(piece(std::string(1025, 'a')))), "m.spm: piece 3: 1025 bytes, expected 1 to 1024");
  EXPECT_EQ(refusal(with_pieces(piece(""))), "m.spm: piece 3: 0 bytes, expected 1 to 1024");
  EXPECT_EQ(refusal(with_pieces(field(1, ""))), "m.spm: piece 3: 0 bytes, expected 1 to 1024");
  EXPECT_EQ(refusal(with_pieces(piece("\xff"))), "m.spm: piece 3: expected valid UTF-8 without a zero byte");
  EXPECT_EQ(refusal(with_pieces(piece("a", 1, std::numeric_limits<float>::infinity()))),
            "m.spm: piece 3: score inf, expected a finite number");
  EXPECT_NE(refusal(with_pieces(piece("a") + piece("a"))), "");
}

TEST(SentencePieceCheck, ARefusalBySentencePieceIsOneLine) {
  EXPECT_EQ(refusal(with_pieces(piece("<0x\n", 6))),
            "m.spm: not a SentencePiece model: Internal: byte piece <0x  is found although `byte_fallback` is false.");
}

TEST(SentencePieceCheck, HoldsTheLongestPieces) {
  std::string pieces, text;
  for (int i = 1; i <= 1024; i++) pieces += piece(text += 'a', 1, static_cast<float>(-i));
  const Tokenizer plain = Tokenizer::from_serialized(with_pieces(piece("▁", 1, -1) + pieces), "m.spm");
  EXPECT_EQ(plain.decode(plain.encode(text + text)), text + text);
  pieces.clear();
  text.clear();
  for (int i = 1; i <= 64; i++) pieces += piece(text += 'a', 4);
  const Tokenizer user = Tokenizer::from_serialized(with_pieces(piece("▁", 1, -1) + pieces), "m.spm");
  EXPECT_EQ(user.decode(user.encode(text + text)), text + text);
}

// Gemma has a user-defined piece for each run of up to 31 spaces.
TEST(SentencePieceCheck, RefusesMoreUserDefinedPiecesOfOneBeginningThanSentencePieceCanHold) {
  std::string pieces = piece("▁", 1, -1), spaces;
  for (int i = 2; i <= 31; i++) {
    spaces.clear();
    for (int k = 0; k < i; k++) spaces += "▁";
    pieces += piece(spaces, 4);
  }
  pieces += piece(std::string(1024, 'b'), 4) + piece("b", 4) + piece("bc", 4);
  const Tokenizer tokenizer = Tokenizer::from_serialized(with_pieces(pieces), "m.spm");
  EXPECT_EQ(tokenizer.id(spaces), 3 + 30);
  EXPECT_EQ(tokenizer.encode(std::string(1025, 'b') + "c"), (std::vector<int32_t>{3, 34, 36}));

  std::string text;
  for (int i = 1; i <= 64; i++) pieces += piece(text += 'a', 4);
  const auto with = [&](const std::string& more) { return with_pieces(pieces + more); };
  EXPECT_EQ(Tokenizer::from_serialized(with(piece(text.substr(1) + "b" + text, 4)), "m.spm").size(), 3 + 31 + 3 + 65);
  EXPECT_EQ(refusal(with(piece(text + "b", 4))), "m.spm: more than 64 user-defined pieces begin with \"a\"");
}

TEST(SentencePieceCheck, AcceptsATableThatFits) {
  const std::string charsmap = Trie::of_one_key().charsmap(std::string("a\0", 2));
  const Tokenizer tokenizer = Tokenizer::from_serialized(with_charsmap(charsmap), "m.spm");
  EXPECT_EQ(tokenizer.encode("b"), tokenizer.encode("a"));
}

TEST(SentencePieceCheck, RefusesTablesWhoseSizesLie) {
  const std::string strings("x\0", 2);
  for (const uint32_t size : {0u, 3u, 4u, 5u, 8u, 1024u, 0xFFFFFFFFu})
    EXPECT_NE(refusal(with_charsmap(little_endian(size) + strings)).find("normalizer's table: a trie of"),
              std::string::npos)
        << size;
  EXPECT_EQ(refusal(with_charsmap("abc")), "m.spm: normalizer's table: 3 bytes, expected a size");
  EXPECT_EQ(refusal(with_charsmap(Trie().charsmap("x"))), "m.spm: normalizer's table: the last replacement has no end");
}

TEST(SentencePieceCheck, RefusesTablesThatLeadOutside) {
  Trie child;
  child.units[256 ^ 'b'] = 'b' | 512u << 10;
  EXPECT_EQ(refusal(with_charsmap(child.charsmap())), "m.spm: normalizer's table: position 1023 of 512 units");
  Trie value = Trie::of_one_key();
  value.units[257] = 1u << 31 | 2;
  EXPECT_EQ(refusal(with_charsmap(value.charsmap())), "m.spm: normalizer's table: replacement at byte 2 of 2");
  Trie loop;
  loop.units[256 ^ 'b'] = 'b' | ('b' << 10);  // its children are those of the root
  EXPECT_EQ(refusal(with_charsmap(loop.charsmap())),
            "m.spm: normalizer's table: a key of over 256 bytes, or an endless one");
}

TEST(SentencePieceCheck, RefusesTablesWithTooManyKeysThatBeginAlike) {
  for (const uint32_t keys : {32u, 33u}) {
    const std::string model = with_charsmap(Trie::of_repeated_keys(keys).charsmap(std::string("a\0", 2)));
    if (keys > 32) {
      EXPECT_EQ(refusal(model), "m.spm: normalizer's table: over 32 keys begin alike");
    } else {
      const Tokenizer tokenizer = Tokenizer::from_serialized(model, "m.spm");
      EXPECT_EQ(tokenizer.encode(std::string(40, 'b')), tokenizer.encode("aa"));
    }
  }
}

TEST(SentencePieceCheck, RefusesEveryCutModel) {
  for (const Normalization normalization : {Normalization::none, Normalization::nmt_nfkc}) {
    const std::string model =
        Tokenizer::train(sentences(100, 1), {.vocab_size = 60, .normalization = normalization}).serialized();
    const size_t step = std::max<size_t>(1, model.size() / 500);
    for (size_t size = 0; size + 8 < model.size(); size += size < 2000 ? 1 : step)
      EXPECT_NE(refusal(model.substr(0, size)), "") << size;
  }
}

TEST(SentencePieceCheck, SurvivesCorruptModels) {
  const std::string model = Tokenizer::train(sentences(100, 1), {.vocab_size = 60}).serialized();
  const std::string small =
      Tokenizer::train(sentences(100, 1), {.vocab_size = 60, .normalization = Normalization::none}).serialized();
  Random random(7, Stream::test);
  int loaded = 0;
  for (int trial = 0; trial < 1500; trial++) {
    std::string bytes = trial % 10 == 0 ? model : small;
    for (int changes = 0; changes < 3; changes++)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    try {
      const Tokenizer tokenizer = Tokenizer::from_serialized(bytes, "m.spm");
      tokenizer.decode(tokenizer.encode("ba ter lé ☃ ﬁ\u00A0x"));
      loaded++;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, 1500);
}

TEST(SentencePieceCheck, AcceptsModelsOfOthers) {
  const std::string cases = std::string(QKV_SHARED_DIR) + "/cases/";
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << "skipped: ../shared not present";
  EXPECT_EQ(Tokenizer::load(cases + "marian/source.spm").size(), 1000);
  EXPECT_EQ(Tokenizer::load(cases + "stories260K/tokenizer.model").size(), 512);
}

}  // namespace
}  // namespace qkv
