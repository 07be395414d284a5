// Text to ids and back: characters and bytes.
#include "text/text_codec.h"

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
  EXPECT_EQ(error_of([&] { codec.decode(Ids{257}); }), "text: token 257, wanted 0 to 256");
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

TEST(TextCodec, WhatItDoesNotHaveIsNamed) {
  const TextCodec codec = TextCodec::of_characters({"a", "b"}, "vocabulary.json");
  EXPECT_EQ(error_of([&] { codec.encode("abc", "prompt"); }),
            "prompt: the character \"c\" is none of the model's 2");
  EXPECT_EQ(error_of([&] { codec.encode("a\xC3", "prompt"); }), "prompt: byte 2 is not valid UTF-8");
  EXPECT_EQ(error_of([] { TextCodec::of_characters({"a", "a"}, "vocabulary.json"); }),
            "vocabulary.json: pieces 0 and 1 are both \"a\"");
}

}  // namespace
}  // namespace qkv
