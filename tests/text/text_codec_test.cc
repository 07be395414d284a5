// Text to ids and back: characters, bytes, pieces.
#include "text/text_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using Ids = std::vector<int32_t>;

TEST(TextCodec, BytesAreTheirOwnIds) {
  const TextCodec codec;
  EXPECT_EQ(codec.encode("a\xFF\n", "text"), (Ids{97, 255, 10}));
  EXPECT_EQ(codec.decode(Ids{97, 256, 255, 10}), "a\xFF\n");  // the end of a document gives nothing
  EXPECT_EQ(codec.size(), 257);
  EXPECT_EQ(error_of([&] { codec.decode(Ids{257}); }), "text: token 257, expected 0 to 256");
}

TEST(TextCodec, CharactersAreThoseOfTheTextByCodePoint) {
  const std::vector<std::string_view> texts = {"née€", "a😀e"};
  const TextCodec codec = TextCodec::of_characters(texts);
  EXPECT_EQ(codec.characters(), (std::vector<std::string>{"a", "e", "n", "é", "€", "😀"}));
  EXPECT_EQ(codec.end(), 6);
  EXPECT_EQ(codec.encode("née€", "text"), (Ids{2, 3, 1, 4}));
  EXPECT_EQ(codec.decode(Ids{6, 5, 0}), "😀a");
  EXPECT_EQ(codec.encode("", "text"), Ids());
}

TEST(TextCodec, PiecesLoseNothingWhereTheyWereTrainedToKeepAll) {
  std::vector<std::string> lines;
  for (int i = 0; i < 50; i++) lines.push_back("  To be,  or not to be:\n");
  const TextCodec codec = TextCodec::of_pieces(Tokenizer::train(lines, {.vocab_size = 300, .exact = true}));
  for (const std::string text : {"To be", " to  be\n\n", "", "\t\u00E9\u20AC\U0001F600 be ", "\u2581"}) {
    const Ids ids = codec.encode(text, "text");
    EXPECT_EQ(codec.decode(ids), text == "\u2581" ? " " : text);  // SentencePiece's own sign for a space
    std::string parts;
    for (size_t i = 0; i < ids.size(); i++) parts += codec.decode({&ids[i], 1}, i == 0);
    EXPECT_EQ(parts, codec.decode(ids));
  }
  EXPECT_EQ(codec.decode(Ids{codec.end(), 1}), "");
  EXPECT_EQ(error_of([&] { codec.decode(Ids{codec.size()}); }),
            fmt::format("tokenizer: id {}, expected 0 to {}", codec.size(), codec.size() - 1));
}

// As transformers finds its added tokens: each part of the text gets the space that the model puts before a text.
TEST(TextCodec, ControlTokensOfSentencePieceAreFoundInTextsThatAreNotPlain) {
  std::vector<std::string> lines(50, "to be or not to be </ s>");
  const TextCodec codec = TextCodec::of_pieces(Tokenizer::train(lines, {.vocab_size = 40}));
  const Ids words = codec.encode("to be", "text");
  Ids expected = {1};
  expected.insert(expected.end(), words.begin(), words.end());
  expected.insert(expected.end(), {2, 2});
  expected.insert(expected.end(), words.begin(), words.end());
  expected.push_back(0);
  EXPECT_EQ(codec.encode("<s>to be</s></s>to be<unk>", "text"), expected);
  EXPECT_EQ(codec.decode(codec.encode_plain("to be </s>", "text")), "to be </s>");
  EXPECT_EQ(codec.encode_plain("to be", "text"), words);
}

TEST(TextCodec, ALeadingSpaceAddedByTheModelIsNotPartOfTheText) {
  std::vector<std::string> lines(50, "to be or not to be");
  const TextCodec codec = TextCodec::of_pieces(Tokenizer::train(lines, {.vocab_size = 20}));
  const Ids ids = codec.encode("to be", "text");
  EXPECT_EQ(codec.decode(ids), "to be");
  EXPECT_EQ(codec.decode(ids, false), " to be");
}

TEST(TextCodec, OfPiecesMayHaveFewerTokensThanTheModel) {
  std::vector<std::string> lines(50, "to be or not to be");
  TextCodec codec = TextCodec::of_pieces(Tokenizer::train(lines, {.vocab_size = 20}));
  const int32_t own = codec.size();
  codec.pad(own + 3, "config.json");
  EXPECT_EQ(codec.size(), own + 3);
  Ids ids = codec.encode("to be", "text");
  ids.insert(ids.begin(), own + 2);
  EXPECT_EQ(codec.decode(ids), "to be");
  EXPECT_EQ(codec.piece(own), "");
  EXPECT_EQ(error_of([&] { codec.decode(Ids{own + 3}); }),
            fmt::format("tokenizer: id {}, expected 0 to {}", own + 3, own + 2));
}

TEST(TextCodec, OfATokenizerJsonMayHaveFewerTokensThanTheModel) {
  TokenizerSpec spec{.pieces = {"[UNK]", "[CLS]", "[SEP]", "a", "##b"}, .before = 1, .after = 2};
  spec.model = WordPieceModel{};
  TextCodec codec = TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "pieces"));
  EXPECT_EQ(codec.unit(), TextUnit::word_pieces);
  EXPECT_EQ(codec.encode("A ab", "text"), (Ids{3, 3, 4}));
  EXPECT_EQ(codec.before(), 1);
  EXPECT_EQ(codec.end(), 2);
  EXPECT_EQ(codec.size(), 5);
  codec.pad(8, "config.json");
  EXPECT_EQ(codec.size(), 8);
  EXPECT_EQ(codec.decode(Ids{3, 7, 3, 4}), "a ab");  // token 7 has no text
  EXPECT_EQ(codec.piece(4), "##b");
  EXPECT_EQ(codec.piece(7), "");
  EXPECT_EQ(codec.id("##b"), 4);
  EXPECT_EQ(codec.id("b"), std::nullopt);
  EXPECT_EQ(error_of([&] { codec.decode(Ids{8}); }), "text: token 8, expected 0 to 7");
  EXPECT_EQ(error_of([&] { codec.pad(4, "config.json"); }), "config.json: 4 tokens of the model, the tokenizer has 5");
  EXPECT_EQ(error_of([&] { codec.encode("a\xC3", "prompt"); }), "prompt: byte 2 is not valid UTF-8");
}

TEST(TextCodec, WhatItDoesNotHaveIsNamed) {
  const TextCodec codec = TextCodec::of_characters({"a", "b"}, "vocabulary.json");
  EXPECT_EQ(error_of([&] { codec.encode("abc", "prompt"); }),
            "prompt: the character \"c\" is not in the vocabulary of 2 characters");
  EXPECT_EQ(error_of([&] { codec.encode("a\xC3", "prompt"); }), "prompt: byte 2 is not valid UTF-8");
  EXPECT_EQ(error_of([] {
              TextCodec::of_characters({"a", "a"}, "vocabulary.json");
            }),
            "vocabulary.json: pieces 0 and 1 are both \"a\"");
}

}  // namespace
}  // namespace qkv
