// A model whose texts name the language of their translation by a tag refuses the parameter and names the tag.
#include <gtest/gtest.h>

#include "io/runs/translation_config.h"
#include "tests/support/errors.h"
#include "tests/support/sentences.h"

namespace qkv::testing {
namespace {

Tokenizer with(const std::vector<std::string>& tags) {
  std::vector<std::string> pieces = {"<unk>", "</s>", "\u2581ba", "b", "a"};
  pieces.insert(pieces.end(), tags.begin(), tags.end());
  const Tokenizer splitter = Tokenizer::train(sentences(200, 1), {.vocab_size = 60});
  return Tokenizer::with_pieces(SentencePieceFile{splitter.serialized(), "splitter"}, pieces, "<unk>", "pieces");
}

TEST(LanguageTags, AreNamedWhereALanguageIsGiven) {
  const Tokenizer tokenizer = with({">>de<<", ">>nl<<"});
  const auto error = [&](const std::string& language) {
    return error_if_any([&] { refuse_tagged_language(tokenizer, language); });
  };
  EXPECT_EQ(error(""), "");
  const std::string begin = "target_language must be empty (is ",
                    reads = "): this model reads a tag of the text; begin each text with ";
  EXPECT_EQ(error("de"), begin + "\"de\"" + reads + ">>de<<");
  EXPECT_EQ(error(">>nl<<"), begin + "\">>nl<<\"" + reads + ">>nl<<");
  EXPECT_EQ(error("fr"), begin + "\"fr\"" + reads + "one of its tags, such as >>de<<, >>nl<<");
}

TEST(LanguageTags, OtherModelsHaveNone) {
  EXPECT_EQ(error_if_any([] { refuse_tagged_language(with({"<<", ">><<", ">>de"}), "de"); }), "");
}

}  // namespace
}  // namespace qkv::testing
