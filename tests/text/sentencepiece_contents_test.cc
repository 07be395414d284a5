// The contents of a SentencePiece model as other tokenizers need them, and base 64.
#include <gtest/gtest.h>

#include "core/to_size.h"
#include "tests/support/errors.h"
#include "text/pieces/charsmap.h"
#include "text/pieces/sentencepiece_check.h"
#include "text/pieces/sentencepiece_writer.h"
#include "text/tokenizer.h"

namespace qkv {
namespace {

TEST(Base64, IsReadBack) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  std::string bytes;
  for (int i = 0; i < 1000; i++) {
    EXPECT_EQ(from_base64(to_base64(bytes), "bytes"), bytes);
    bytes += static_cast<char>(i * 37 + i / 7);
  }
}

TEST(SentencePieceContents, AreThoseOfTheFile) {
  const std::vector<std::string> lines(20, "the cat sat on the mat");
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    const Tokenizer tokenizer = Tokenizer::train(lines, {.kind = kind, .vocab_size = 30, .control = {"<mask>"}});
    const SentencePieceContents contents = sentencepiece_contents(tokenizer.serialized());
    EXPECT_EQ(contents.kind, kind == TokenizerKind::unigram ? 1 : 2);
    ASSERT_EQ(std::ssize(contents.pieces), tokenizer.size());
    for (int32_t id = 0; id < tokenizer.size(); id++) EXPECT_EQ(contents.pieces[to_size(id)].text, tokenizer.piece(id));
    EXPECT_EQ(contents.pieces[0].type, kUnknownPiece);
    EXPECT_EQ(contents.pieces[3].type, kControlPiece);
    EXPECT_EQ(contents.pieces[4].type, kNormalPiece);
    EXPECT_TRUE(contents.space_first && contents.strips_spaces && contents.marks_spaces);
    EXPECT_FALSE(contents.space_behind || contents.byte_fallback);
    EXPECT_EQ(contents.charsmap, charsmap_of(tokenizer.serialized()));
  }
  const Tokenizer exact = Tokenizer::train(lines, {.vocab_size = 300, .exact = true});
  const SentencePieceContents contents = sentencepiece_contents(exact.serialized());
  EXPECT_TRUE(contents.byte_fallback);
  EXPECT_FALSE(contents.strips_spaces);
  EXPECT_TRUE(contents.charsmap.empty());
}

}  // namespace
}  // namespace qkv
