// Runs of every kind: what is written is read again, and errors name the file.
#include "io/runs/run.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/recommenders.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_if_any;
using testing::spill;
using testing::TempDir;

const std::vector<std::string> kPieces = {"<s>", "</s>", "<unk>", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};

class RunTest : public ::testing::Test {
 protected:
  RunTest() : run(directory / "run") {}

  void create(const TokenizerPair& tokenizers, TranslationConfig translation = {}) {
    ModelConfig config = testing::small_config();
    config.source_vocab = tokenizers.source.size(), config.target_vocab = tokenizers.target.size();
    config.shared_embeddings = config.source_vocab == config.target_vocab;
    Transformer<float> model(config);
    model.parameters().initialize(1);
    create_run(run, TranslatorRun{config, tokenizers, translation}, [&](const RunDirectory& partial) {
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

TEST_F(RunTest, WritesOneVocabularyThatBothSidesShare) {
  create({list(), list()});
  EXPECT_TRUE(has(run.vocabulary()));
  EXPECT_FALSE(has(run.source_vocabulary()));
  EXPECT_FALSE(has(run.tokenizer()));
  EXPECT_FALSE(has(run.training()));
  const TranslatorRun loaded = load_run<TranslatorRun>(run.root());
  EXPECT_EQ(loaded.tokenizers.source.encode("c <s> x"), (std::vector<int32_t>{5, 0, 2}));
}

TEST_F(RunTest, WritesAVocabularyPerSideIfTheyDiffer) {
  const Tokenizer trained = Tokenizer::train(testing::sentences(300, 1), {.vocab_size = 100});
  std::vector<std::string> pieces;
  for (int32_t i = 0; i < trained.size(); i++) pieces.push_back(trained.piece(i));
  std::ranges::reverse(pieces);
  create({list(), Tokenizer::with_pieces({{trained.serialized(), ""}}, pieces, "<unk>", "")});
  EXPECT_TRUE(has(run.source_vocabulary()));
  EXPECT_TRUE(has(run.target_vocabulary()));
  EXPECT_TRUE(has(run.target_tokenizer()));
  EXPECT_FALSE(has(run.source_tokenizer()));
  const TranslatorRun loaded = load_run<TranslatorRun>(run.root());
  EXPECT_EQ(loaded.tokenizers.source.encode("c"), std::vector<int32_t>{5});
  std::vector<int32_t> ids = trained.encode("bamor");
  for (int32_t& id : ids) id = trained.size() - 1 - id;
  EXPECT_EQ(loaded.tokenizers.target.encode("bamor"), ids);
}

TEST_F(RunTest, ReadsSpecialTokensAsIds) {
  TranslationConfig config;
  config.lowercase = true;
  config.source_start = "a", config.source_end = "b", config.start = "c", config.never = {"d", "e"};
  config.min_length = 3;
  create({list(), list()}, config);
  TranslationConfig read;
  EXPECT_NE(read, config);
  const TranslationTokens tokens = load_run<TranslatorRun>(run.root()).tokens;
  EXPECT_TRUE(tokens.lowercase);
  EXPECT_EQ(tokens.source_before, std::vector<int32_t>{3});
  EXPECT_EQ(tokens.source_after, std::vector<int32_t>{4});
  EXPECT_EQ(tokens.start, 5);
  EXPECT_EQ(tokens.end, 1);
  EXPECT_EQ(tokens.unknown, 2);
  EXPECT_EQ(tokens.never, (std::vector<int32_t>{6, 7}));
  EXPECT_EQ(tokens.min_length, 3);
}

TEST_F(RunTest, PutsTheTokensOfLanguagesInTheirPlaces) {
  TranslationConfig config;
  config.source_end = "b", config.start = "c";
  config.languages = {"x", "y"}, config.language_tokens = {"d", "e"};
  const auto edges = [&](SourceLanguage source, TargetLanguage target, const std::string& from, const std::string& to) {
    config.source_language = source, config.target_language = target;
    return edges_of(tokens_of(config, {list(), list()}, "run"), from, to);
  };
  const SentenceEdges mbart = edges(SourceLanguage::after, TargetLanguage::start, "x", "y");
  EXPECT_EQ(mbart.before, std::vector<int32_t>{});
  EXPECT_EQ(mbart.after, (std::vector<int32_t>{4, 6}));
  EXPECT_EQ(mbart.start, std::vector<int32_t>{7});
  const SentenceEdges nllb = edges(SourceLanguage::before, TargetLanguage::first, "d", "y");
  EXPECT_EQ(nllb.before, std::vector<int32_t>{6});
  EXPECT_EQ(nllb.after, std::vector<int32_t>{4});
  EXPECT_EQ(nllb.start, (std::vector<int32_t>{5, 7}));
  EXPECT_EQ(edges(SourceLanguage::none, TargetLanguage::source, "", "x").before, std::vector<int32_t>{6});
  const auto error = [&] { return testing::error_of([&] { tokens_of(config, {list(), list()}, "run"); }); };
  config.language_tokens = {"d"};
  EXPECT_EQ(error(), "run: language_tokens must have 2 tokens, one for each of languages (has 1)");
  config.language_tokens = {"d", "q"};
  EXPECT_EQ(error(), "run: language_tokens is \"q\", which is not in the vocabulary");
  config.languages = {"x", "x"}, config.language_tokens = {"d", "e"};
  EXPECT_EQ(error(), "run: languages must be different codes (holds twice \"x\")");
  config.languages = config.language_tokens = {};
  EXPECT_EQ(error(), "run: languages must be there if source_language or target_language is not none (has 0)");
  config.target_language = TargetLanguage::first, config.languages = config.language_tokens = {"d"}, config.first = "a";
  EXPECT_EQ(error(), "run: first must be empty if target_language is first (is \"a\")");
}

TEST_F(RunTest, TakesTheSpecialTokensOfATrainedModelFromSentencePiece) {
  const Tokenizer tokenizer = Tokenizer::train(testing::sentences(300, 1), {.vocab_size = 100});
  create({tokenizer, tokenizer}, trained_translation({tokenizer, tokenizer}, false));
  EXPECT_TRUE(has(run.tokenizer()));
  const TranslationTokens tokens = load_run<TranslatorRun>(run.root()).tokens;
  EXPECT_EQ(tokens.source_after, std::vector<int32_t>{tokenizer.end()});
  EXPECT_EQ(tokens.start, tokenizer.start());
  EXPECT_EQ(tokens.end, tokenizer.end());
  EXPECT_EQ(tokens.unknown, tokenizer.unknown());
  EXPECT_TRUE(tokens.never.empty());
}

TEST_F(RunTest, KeepsTheAbbreviationsOfATranslator) {
  create({list(), list()});
  EXPECT_FALSE(has(run.abbreviations()));
  EXPECT_TRUE(load_run<TranslatorRun>(run.root()).abbreviations.empty());

  TranslatorRun loaded = read_run<TranslatorRun>(run);
  loaded.abbreviations = {"abt", "u.a"};
  loaded.write(run);
  EXPECT_EQ(testing::slurp(run.abbreviations()), "abt\nu.a\n");
  EXPECT_EQ(load_run<TranslatorRun>(run.root()).abbreviations, loaded.abbreviations);
}

TEST_F(RunTest, RefusesDamagedAbbreviations) {
  create({list(), list()});
  const auto error = [&] { return error_if_any([&] { load_run<TranslatorRun>(run.root()); }); };
  spill(run.abbreviations(), "abt\nz. B.\n");
  EXPECT_EQ(error(), run.abbreviations() + ": line 2 has 2 words, expected one abbreviation");
  spill(run.abbreviations(), "abt\nabt\n\xFF");
  EXPECT_EQ(error().find(run.abbreviations() + ":3: byte 1 of the line is not valid UTF-8"), 0U);
  std::filesystem::resize_file(run.abbreviations(), (1 << 24) + 1);
  EXPECT_EQ(error(), run.abbreviations() + ": has more than 16777216 bytes");
}

TEST_F(RunTest, RejectsATranslatorWithoutAnEncoder) {
  create({list(), list()});
  ModelConfig config = read_config(run).model;
  config.encoder_layers = config.source_vocab = 0;
  config.shared_embeddings = false;
  write_config(run, RunKind::translator, config);
  EXPECT_EQ(error_if_any([&] { load_run<TranslatorRun>(run.root()); }),
            run.config() + ": encoder_layers must be at least 1 in a translator (is 0)");
}

TEST_F(RunTest, NamesTheKindFoundAndTheKindsAccepted) {
  testing::create_recommender(run.root(), testing::small_log(20));
  EXPECT_EQ(error_if_any([&] { load_run<TranslatorRun>(run.root() + "/"); }),
            run.root() + " is a recommender; expected a translator (try: qkv recommend)");
  EXPECT_EQ(error_if_any([&] { load_one_of<EncoderRun, TranslatorRun, LanguageRun>(run.root()); }),
            run.root() +
                " is a recommender; expected an encoder, a translator or a language model "
                "(try: qkv recommend)");
  EXPECT_EQ(error_if_any([&] { read_run<EncoderRun>(run); }),
            run.root() + " is a recommender; expected an encoder (try: qkv recommend)");
  EXPECT_EQ(error_if_any([&] { load_one_of<LanguageRun, RecommenderRun>(run.root()); }), "");
}

TEST_F(RunTest, ReadsARunThatHasNoWeightsYet) {
  create({list(), list()});
  std::filesystem::remove(run.model());
  EXPECT_EQ(read_run<TranslatorRun>(run).model, nullptr);
  EXPECT_EQ(error_if_any([&] { load_run<TranslatorRun>(run.root()); }), run.model() + ": No such file or directory");
}

TEST_F(RunTest, ErrorsNameTheFileAndTheToken) {
  create({list(), list()});
  const auto error = [&] { return error_if_any([&] { load_run<TranslatorRun>(run.root()); }); };
  const auto with = [&](auto&& change) {
    TranslationConfig config;
    change(config);
    write_fields(run.translation(), config);
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
  EXPECT_EQ(with([](auto& c) { c.min_length = -1; }), run.translation() + ": min_length must be at least 0 (is -1)");
  EXPECT_EQ(with([](auto&) {}), "");
  spill(run.translation(), "{}");
  EXPECT_EQ(error(), "");
  spill(run.translation(), R"({"lower_case": true})");
  EXPECT_EQ(error(), run.translation() +
                         ": unknown name \"lower_case\"; did you mean \"lowercase\"? (run written by qkv " +
                         read_config(run).version + ")");
  write_fields(run.translation(), TranslationConfig());
  std::filesystem::remove(run.vocabulary());
  EXPECT_EQ(error(), run.root() + ": has neither a tokenizer nor a vocabulary");
}

TEST_F(RunTest, LeavesNothingBehindIfCreatingFails) {
  const auto failing = [](const RunDirectory&) { throw Error("no"); };
  EXPECT_EQ(error_if_any([&] {
              create_run(run, TranslatorRun{testing::small_config(), {list(), list()}, {}}, failing);
            }),
            "no");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace qkv
