// The run of a language model whose tokeniser is a tokenizer.json: it comes back, and text goes on with it.
#include "io/language_run.h"

#include <gtest/gtest.h>

#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/weights.h"
#include "qkv/generator.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/temp_dir.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using testing::byte_pieces;
using testing::error_of;
using Ids = std::vector<int32_t>;

class LanguageRunTest : public ::testing::Test {
 protected:
  // A run of a random model of V tokens.
  void write(const TokenizerSpec& spec, int64_t V, TextUnit unit = TextUnit::byte_pieces) const {
    ModelConfig config = testing::small_config();
    config.encoder_layers = config.source_vocab = 0;
    config.shared_embeddings = false;
    config.positions = Positions::learned;
    config.target_vocab = V;
    Transformer<float> model(config);
    testing::randomise(model.parameters(), 3);
    const LanguageConfig language{.unit = unit, .start = "<end>", .ends = {"<end>"}};
    write_file_atomic(run_.config(), to_json(config));
    write_file_atomic(run_.language(), json_from_fields(language));
    save_codec(run_, TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "spec")));
    save_weights(run_.model(), model.parameters(), model.parameters().values());
  }
  std::string error() const {
    const std::string text = error_of([&] { load_language_model(run_.root()); });
    return text.substr(std::min(text.size(), run_.root().size() + 1));
  }

  testing::TempDir directory_;
  RunDirectory run_{directory_.path()};
};

TEST_F(LanguageRunTest, ATokenizerJsonComesBackWithAsManyTokensAsTheModel) {
  write(byte_pieces(), 300);
  LanguageRun run = load_language_model(run_.root());
  EXPECT_EQ(run.codec.encode("abc<end>", "text"), (Ids{256, 'c', 257}));
  EXPECT_EQ(run.codec.size(), 300);
  EXPECT_EQ(run.ends.start, 257);
  EXPECT_EQ(run.ends.ends, Ids{257});
  EXPECT_FALSE(run.ends.starts_prompts);
  TokenizerSpec spec = byte_pieces();
  spec.before = 257;
  write(spec, 300);
  EXPECT_TRUE(load_language_model(run_.root()).ends.starts_prompts);
}

TEST_F(LanguageRunTest, ATokeniserThatDoesNotFitIsRefused) {
  write(byte_pieces(), 257);
  EXPECT_EQ(error(), "config.json: 257 tokens of the model, the tokeniser has 258");
  write(byte_pieces(), 258, TextUnit::word_pieces);
  EXPECT_EQ(error(), "tokenizer.json: has byte_pieces, wanted word_pieces by language.json");
  write(byte_pieces(), 258);
  write_file_atomic(run_.language(), json_from_fields(LanguageConfig{.unit = TextUnit::byte_pieces}));
  EXPECT_EQ(error(), "language.json: ends is empty, and the vocabulary names no end");
  write_file_atomic(run_.tokenizer_json(), "{}");
  EXPECT_EQ(error(), "tokenizer.json: model is missing, wanted an object");
}

TEST_F(LanguageRunTest, TextIsToldInWholeCharacters) {
  write(byte_pieces(), 258);
  std::vector<std::string> told;
  GenerateOptions options{.max_tokens = 300, .temperature = 5};
  options.on_text = [&](std::string_view text) { told.emplace_back(text); };
  const Generation found = Generator(run_.root()).generate("é", options);
  ASSERT_GT(told.size(), 20u);
  EXPECT_NE(told.size(), found.tokens.size());  // some waited for others
  std::string all;
  for (const std::string& part : told) {
    // Where what was told ends in the beginning of a character, this does not go on.
    if (whole_characters(all) < all.size()) {
      EXPECT_NE(static_cast<unsigned char>(part[0]) & 0xC0, 0x80) << all.size();
    }
    all += part;
  }
  EXPECT_EQ(all, found.text);
}

}  // namespace
}  // namespace qkv
