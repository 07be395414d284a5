// Attention maps of encoders.
#include "decode/attend.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "core/to_size.h"
#include "io/runs/run.h"
#include "io/runs/tokenizer_files.h"
#include "io/weights/weights.h"
#include "qkv/embedder.h"
#include "tests/decode/random_run.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::TempDir;
using Names = std::vector<std::string>;

// The run of a random encoder with a tokenizer.json.
class EncoderAttention : public ::testing::Test {
 protected:
  Embedder make(const TokenizerSpec& spec, const EmbeddingConfig& embedding) {
    ModelConfig config = testing::small_config();
    config.decoder_layers = config.target_vocab = 0;
    config.shared_embeddings = config.tied_output = false;
    config.source_vocab = static_cast<int64_t>(spec.pieces.size() + spec.added.size());
    Transformer<float> model(config);
    testing::randomize(model.parameters(), 1);
    const TextCodec codec = TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "spec"));
    create_run(run_, EncoderRun{config, embedding, codec}, [&](const RunDirectory& partial) {
      save_weights(partial.model(), model.parameters(), model.parameters().values());
    });
    return Embedder(run_.root());
  }

  TempDir directory_;
  RunDirectory run_{directory_ / "run"};
};

TEST_F(EncoderAttention, LabelsOfWordPiecesShowWhereWordsBegin) {
  TokenizerSpec spec;
  spec.pieces = {"[UNK]", "[CLS]", "[SEP]", "sleep", "##ing", "dog", "##"};
  spec.model = WordPieceModel{};
  const Embedder embedder =
      make(spec, {.unit = TextUnit::word_pieces, .prefix = "dog ", .start = "[CLS]", .end = "[SEP]"});
  const AttentionMap map = embedder.attend("sleeping dog");
  ASSERT_EQ(map.kinds.size(), 1u);
  const AttentionKind& kind = map.kinds.front();
  EXPECT_EQ(kind.name, "encoder");
  EXPECT_EQ(kind.rows, (Names{"▁[CLS]", "▁dog", "▁sleep", "ing", "▁dog", "▁[SEP]"}));
  EXPECT_EQ(kind.columns, kind.rows);
  EXPECT_EQ(embedder.attend("x", {.prefix = ""}).kinds[0].rows, (Names{"▁[CLS]", "▁[UNK]", "▁[SEP]"}));
  EXPECT_EQ(merge_words(map).kinds[0].rows, (Names{"▁[CLS]", "▁dog", "▁sleeping", "▁dog", "▁[SEP]"}));
  for (const auto& layer : kind.layers)
    for (const AttentionHead& head : layer)
      for (auto row = head.weights.begin(); row != head.weights.end(); row += 6)
        EXPECT_NEAR(std::accumulate(row, row + 6, 0.0), 1, 1e-6);
}

TEST_F(EncoderAttention, LabelsOfBytePiecesAreText) {
  TokenizerSpec spec = testing::byte_pieces();
  spec.before = spec.after = 257;
  const Embedder embedder = make(spec, {.unit = TextUnit::byte_pieces, .start = "<end>", .end = "<end>"});
  EXPECT_EQ(embedder.attend("ab a").kinds[0].rows, (Names{"<end>", "▁ab", "▁", "a", "<end>"}));
}

TEST_F(EncoderAttention, LimitsAreThoseOfTheModel) {
  const Embedder embedder = make(testing::byte_pieces(), {.unit = TextUnit::byte_pieces, .max_length = 5});
  EXPECT_EQ(embedder.attend(std::string(20, 'x')).kinds[0].rows.size(), 20u);
  EXPECT_EQ(error_of([&] { embedder.attend(std::string(21, 'x')); }), "text must have at most 20 tokens (has 21)");
  EXPECT_EQ(error_of([&] { embedder.attend(""); }), "text 1: has no tokens");
  EXPECT_EQ(error_of([&] { embedder.attend("a", {.max_length = 21}); }), "max_length must be between 1 and 20 (is 21)");
}

TEST_F(EncoderAttention, OptionsThatTheMethodDoesNotUseAreRefused) {
  const Embedder embedder = make(testing::byte_pieces(), {.unit = TextUnit::byte_pieces});
  EXPECT_EQ(error_of([&] {
              embedder.attend("a", {}, {AttentionMethod::rollout, 7});
            }),
            "steps must not be set if method is rollout; only integrated has steps (is 7)");
  EXPECT_EQ(error_of([&] {
              embedder.attend("a", {}, {AttentionMethod::weights, 50, "b"});
            }),
            "baseline must not be set if method is weights; only gradient and integrated have a baseline (is \"b\")");
}

TEST_F(EncoderAttention, AnEmbedderWithADecoderIsRefused) {
  ModelConfig config = testing::small_config();
  config.encoder_layers = config.source_vocab = 0;
  config.shared_embeddings = config.tied_output = false;
  TokenizerSpec spec = testing::byte_pieces();
  config.target_vocab = static_cast<int64_t>(spec.pieces.size() + spec.added.size());
  Transformer<float> model(config);
  testing::randomize(model.parameters(), 1);
  const TextCodec codec = TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "spec"));
  create_run(run_, EncoderRun{config, {.unit = TextUnit::byte_pieces}, codec}, [&](const RunDirectory& partial) {
    save_weights(partial.model(), model.parameters(), model.parameters().values());
  });
  EXPECT_EQ(error_of([&] { Embedder(run_.root()).attend("a"); }),
            "attend: the run is an embedder with a decoder, expected one with an encoder");
}

TEST(Embedder, RefusesTheAttentionOfATranslator) {
  const TempDir directory;
  const Embedder embedder(testing::make_random_run(directory / "run"));
  EXPECT_EQ(error_of([&] { embedder.attend("the cat"); }),
            "attend: the run is a translator or a language model, expected an encoder");
}

}  // namespace
}  // namespace qkv
