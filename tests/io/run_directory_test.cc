// Run directories: what is written comes back, and what does not fit is named.
#include "io/run_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/fields.h"
#include "io/weights.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_if_any;
using testing::spill;
using testing::TempDir;

const std::vector<std::string> kPieces = {"<s>", "</s>", "<unk>", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() : run(directory / "run") {}

  void create(const TokenizerPair& tokenizers, TranslationConfig translation = {}) {
    ModelConfig config = testing::small_config();
    config.source_vocab = tokenizers.source.size(), config.target_vocab = tokenizers.target.size();
    config.shared_embeddings = config.source_vocab == config.target_vocab;
    Transformer<float> model(config);
    model.parameters().initialise(1);
    create_run(run, {config, tokenizers, translation}, [&](const RunDirectory& partial) {
      save_weights(partial.model(), model.parameters(), model.parameters().values());
    });
  }
  bool has(const std::string& path) const { return std::filesystem::exists(path); }

  static Tokenizer list(std::vector<std::string> pieces = kPieces) {
    return Tokenizer::with_pieces({}, std::move(pieces), "<unk>", "list");
  }

  TempDir directory;
  RunDirectory run;
};

TEST_F(RunDirectoryTest, HoldsOneFileForBothSidesWhereTheyAreTheSame) {
  create({list(), list()});
  EXPECT_TRUE(has(run.vocabulary()));
  EXPECT_FALSE(has(run.source_vocabulary()));
  EXPECT_FALSE(has(run.tokenizer()));
  EXPECT_FALSE(has(run.training()));
  const LoadedRun loaded = load_run(run.root());
  EXPECT_EQ(loaded.tokenizers.source.encode("c <s> x"), (std::vector<int32_t>{5, 0, 2}));
}

TEST_F(RunDirectoryTest, HoldsAFileForEachSideWhereTheyDiffer) {
  const Tokenizer trained = Tokenizer::train(testing::sentences(300, 1), {.vocab_size = 100});
  std::vector<std::string> pieces;
  for (int32_t i = 0; i < trained.size(); i++) pieces.push_back(trained.piece(i));
  std::ranges::reverse(pieces);
  create({list(), Tokenizer::with_pieces({{trained.serialized(), ""}}, pieces, "<unk>", "")});
  EXPECT_TRUE(has(run.source_vocabulary()));
  EXPECT_TRUE(has(run.target_vocabulary()));
  EXPECT_TRUE(has(run.target_tokenizer()));
  EXPECT_FALSE(has(run.source_tokenizer()));
  const LoadedRun loaded = load_run(run.root());
  EXPECT_EQ(loaded.tokenizers.source.encode("c"), std::vector<int32_t>{5});
  std::vector<int32_t> ids = trained.encode("bamor");
  for (int32_t& id : ids) id = trained.size() - 1 - id;
  EXPECT_EQ(loaded.tokenizers.target.encode("bamor"), ids);
}

TEST_F(RunDirectoryTest, SpecialTokensComeBackAsIds) {
  TranslationConfig config;
  config.lowercase = true;
  config.source_start = "a", config.source_end = "b", config.start = "c", config.never = {"d", "e"};
  config.min_length = 3;
  create({list(), list()}, config);
  TranslationConfig read;
  EXPECT_NE(read, config);
  const TranslationTokens tokens = load_run(run.root()).translation;
  EXPECT_TRUE(tokens.lowercase);
  EXPECT_EQ(tokens.source_before, std::vector<int32_t>{3});
  EXPECT_EQ(tokens.source_after, std::vector<int32_t>{4});
  EXPECT_EQ(tokens.start, 5);
  EXPECT_EQ(tokens.end, 1);
  EXPECT_EQ(tokens.unknown, 2);
  EXPECT_EQ(tokens.never, (std::vector<int32_t>{6, 7}));
  EXPECT_EQ(tokens.min_length, 3);
}

TEST_F(RunDirectoryTest, WhatATrainedModelNeedsIsSentencePieces) {
  const Tokenizer tokenizer = Tokenizer::train(testing::sentences(300, 1), {.vocab_size = 100});
  create({tokenizer, tokenizer}, trained_translation({tokenizer, tokenizer}, false));
  EXPECT_TRUE(has(run.tokenizer()));
  const TranslationTokens tokens = load_run(run.root()).translation;
  EXPECT_EQ(tokens.source_after, std::vector<int32_t>{tokenizer.end()});
  EXPECT_EQ(tokens.start, tokenizer.start());
  EXPECT_EQ(tokens.end, tokenizer.end());
  EXPECT_EQ(tokens.unknown, tokenizer.unknown());
  EXPECT_TRUE(tokens.never.empty());
}

TEST_F(RunDirectoryTest, ADecoderOnlyModelDoesNotTranslate) {
  create({list(), list()});
  ModelConfig config = load_config(run);
  config.encoder_layers = config.source_vocab = 0;
  config.shared_embeddings = false;
  std::ofstream(run.config()) << to_json(config);
  EXPECT_EQ(error_if_any([&] { load_run(run.root()); }),
            run.config() + ": encoder_layers is 0, wanted a model that translates");
}

TEST_F(RunDirectoryTest, ErrorsNameTheFileAndTheToken) {
  create({list(), list()});
  const auto error = [&] { return error_if_any([&] { load_run(run.root()); }); };
  const auto with = [&](auto&& change) {
    TranslationConfig config;
    change(config);
    spill(run.translation(), json_from_fields(config));
    return error();
  };
  EXPECT_EQ(with([](auto& c) { c.start = "<go>"; }),
            run.translation() + ": start is \"<go>\", which is not in the vocabulary");
  EXPECT_EQ(with([](auto& c) {
              c.never = {"a", "x"};
            }),
            run.translation() + ": never is \"x\", which is not in the vocabulary");
  EXPECT_EQ(with([](auto& c) { c.unknown = "x"; }),
            run.vocabulary() + ": the unknown token \"x\" is not in the vocabulary");
  EXPECT_EQ(with([](auto& c) { c.min_length = -1; }), run.translation() + ": min_length is -1, wanted at least 0");
  EXPECT_EQ(with([](auto&) {}), "");
  spill(run.translation(), "{}");
  EXPECT_EQ(error(), run.translation() +
                         ": missing lowercase, source_start, source_end, start, end, unknown, never, min_length");
  spill(run.translation(), json_from_fields(TranslationConfig()));
  std::filesystem::remove(run.vocabulary());
  EXPECT_EQ(error(), run.root() + ": holds neither a tokeniser nor a vocabulary");
}

TEST_F(RunDirectoryTest, IsNotThereWhereSomethingFailedOnTheWay) {
  const auto failing = [](const RunDirectory&) { throw Error("no"); };
  EXPECT_EQ(error_if_any([&] { create_run(run, {testing::small_config(), {list(), list()}, {}}, failing); }), "no");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace qkv
