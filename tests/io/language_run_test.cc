// The run of a language model with a tokenizer.json: what is written is read again, and it continues text.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/runs/run.h"
#include "io/runs/run_kinds.h"
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
  // Writes the run of a random model with V tokens.
  void write(const TokenizerSpec& spec, int64_t V, TextUnit unit = TextUnit::byte_pieces) const {
    ModelConfig config = testing::small_config();
    config.encoder_layers = config.source_vocab = 0;
    config.shared_embeddings = false;
    config.positions = Positions::learned;
    config.target_vocab = V;
    Transformer<float> model(config);
    testing::randomize(model.parameters(), 3);
    const LanguageConfig language{.unit = unit, .start = "<end>", .ends = {"<end>"}};
    std::filesystem::remove_all(run_.root());
    create_run(run_, LanguageRun{config, language, TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "spec"))},
               [&](const RunDirectory& partial) {
                 save_weights(partial.model(), model.parameters(), model.parameters().values());
               });
  }
  std::string error() const {
    const std::string text = error_of([&] { load_run<LanguageRun>(run_.root()); });
    return text.substr(std::min(text.size(), run_.root().size() + 1));
  }

  testing::TempDir directory_;
  RunDirectory run_{directory_ / "run"};
};

TEST_F(LanguageRunTest, ReadsATokenizerJsonPaddedToTheModelsVocabulary) {
  write(byte_pieces(), 300);
  LanguageRun run = load_run<LanguageRun>(run_.root());
  EXPECT_EQ(run.codec.encode("abc<end>", "text"), (Ids{256, 'c', 257}));
  EXPECT_EQ(run.codec.size(), 300);
  EXPECT_EQ(run.ends.start, 257);
  EXPECT_EQ(run.ends.ends, Ids{257});
  EXPECT_FALSE(run.ends.starts_prompts);
  TokenizerSpec spec = byte_pieces();
  spec.before = 257;
  write(spec, 300);
  EXPECT_TRUE(load_run<LanguageRun>(run_.root()).ends.starts_prompts);
}

TEST_F(LanguageRunTest, RejectsATokenizerThatDoesNotMatch) {
  write(byte_pieces(), 257);
  EXPECT_EQ(error(), "config.json: 257 tokens of the model, the tokenizer has 258");
  write(byte_pieces(), 258, TextUnit::word_pieces);
  EXPECT_EQ(error(), "tokenizer.json: unit must be word_pieces, as in language.json (is byte_pieces)");
  write(byte_pieces(), 258);
  write_fields(run_.language(), LanguageConfig{.unit = TextUnit::byte_pieces});
  EXPECT_EQ(error(), "language.json: ends must not be empty, because the vocabulary has no end token");
  write_fields(run_.language(), LanguageConfig{.unit = TextUnit::byte_pieces, .ends = {"<end>"}});
  EXPECT_EQ(error(), "language.json: start must not be empty, because the vocabulary has no end token");
  write_file_atomic(run_.tokenizer_json(), "{}");
  EXPECT_EQ(error(), "tokenizer.json: model is missing, expected an object");
}

TEST_F(LanguageRunTest, StreamsTextInWholeCharacters) {
  write(byte_pieces(), 258);
  std::vector<std::string> parts;
  GenerateOptions options;
  options.max_tokens = 300;
  options.temperature = 5;
  options.on_text = [&](std::string_view text) { parts.emplace_back(text); };
  const Generation found = Generator(run_.root()).generate("é", options);
  ASSERT_GT(parts.size(), 20u);
  EXPECT_NE(parts.size(), found.tokens.size());  // some waited for the rest of a character
  std::string all;
  for (const std::string& part : parts) {
    // No part continues a character that an earlier one began.
    if (whole_characters(all) < all.size()) {
      EXPECT_NE(static_cast<unsigned char>(part[0]) & 0xC0, 0x80) << all.size();
    }
    all += part;
  }
  EXPECT_EQ(all, found.text);
}

TEST_F(LanguageRunTest, KeepsChatTemplates) {
  write(byte_pieces(), 258);
  LanguageRun run = load_run<LanguageRun>(run_.root());
  EXPECT_EQ(run.chat, ChatFiles());
  run.chat.templates = {{"default", "{{ x }}\r\n\n"}, {"tool_use", "t"}};
  run.chat.tokens.bos_token = "<s>";
  run.chat.tokens.strip_right = {"<end>"};
  run.chat.tokens.space_after_tokens = false;
  run.write(run_);
  EXPECT_EQ(load_run<LanguageRun>(run_.root()).chat, run.chat);
  EXPECT_TRUE(std::filesystem::exists(run_.root() + "/additional_chat_templates/tool_use.jinja"));
  testing::spill(run_.chat(), R"({"bos": "x"})");
  EXPECT_TRUE(error().starts_with("chat.json: ")) << error();
}

TEST_F(LanguageRunTest, PiecesMayHaveNoStart) {
  const TextCodec codec = TextCodec::of_pieces(Tokenizer::train({"a b c", "b c a"}, {TokenizerKind::bpe, 30}));
  ModelConfig config = testing::small_config();
  config.encoder_layers = config.source_vocab = 0;
  config.shared_embeddings = false;
  config.target_vocab = codec.size();
  LanguageRun run{config, {.unit = TextUnit::pieces, .start = "<s>"}, codec};
  for (const bool starts : {true, false}) {
    run.chat.tokens.starts_prompts = starts;
    std::filesystem::remove_all(run_.root());
    create_run(run_, run, [](const RunDirectory&) {});
    EXPECT_EQ(std::filesystem::exists(run_.chat()), !starts);
    const TextEnds ends = read_run<LanguageRun>(run_).ends;
    EXPECT_EQ(ends.beginning(Ids{9}), starts ? (Ids{1, 9}) : Ids{9});
    EXPECT_EQ(ends.beginning(Ids{9}, true), Ids{9});
    EXPECT_EQ(ends.beginning(Ids{}), Ids{1});
  }
}

}  // namespace
}  // namespace qkv
