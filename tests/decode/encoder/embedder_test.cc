// Text embeddings: agreement with torch, independence of the batch, all kinds of runs.
#include "qkv/embedder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "core/fields.h"
#include "core/to_size.h"
#include "decode/encoder/pooling.h"
#include "io/runs/run.h"
#include "io/runs/tokenizer_files.h"
#include "ops/pooling.h"
#include "qkv/import.h"
#include "qkv/runs.h"
#include "qkv/system.h"
#include "tests/decode/random_run.h"
#include "tests/support/bert_case.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/errors.h"
#include "tests/support/numeric.h"

namespace qkv {
namespace {

using testing::BertCase;
using testing::error_of;
using testing::relative_error;
using testing::TempDir;

constexpr double kTolerance = 1e-5;  // of float32 hidden states, as in tests/convert/bert_test.cc

// The run of a golden encoder.
class EmbedderTest : public ::testing::Test {
 protected:
  void SetUp() override { import_model(BertCase("sentence").path(), run(), testing::listed_tokens()); }
  std::string run() const { return directory_ / "run"; }

  TempDir directory_;
};

std::vector<float> row(const Embeddings& e, size_t i) {
  const auto width = static_cast<std::ptrdiff_t>(e.width);
  return {e.values.begin() + static_cast<std::ptrdiff_t>(i) * width,
          e.values.begin() + static_cast<std::ptrdiff_t>(i + 1) * width};
}

TEST_F(EmbedderTest, VectorsAgreeWithTorch) {
  const BertCase expected("sentence");
  const Embedder embedder(run());
  EXPECT_EQ(embedder.width(), 12);
  EXPECT_EQ(embedder.max_length(), 14);
  const Embeddings as_imported = embedder.embed(BertCase::texts());
  EXPECT_EQ(as_imported.cut, 0);
  EXPECT_LE(relative_error(as_imported.values, expected.values<float>("normalized")), kTolerance);
  for (const auto& [name, pooling] :
       {std::pair{"mean", Pooling::mean}, {"first", Pooling::first}, {"last", Pooling::last}}) {
    const Embeddings found = embedder.embed(BertCase::texts(), {.pooling = pooling, .normalize = false});
    EXPECT_LE(relative_error(found.values, expected.values<float>(name)), kTolerance) << name;
  }
}

TEST_F(EmbedderTest, VectorsDependNeitherOnTheBatchNorOnThreads) {
  const Embedder embedder(run());
  std::vector<std::string> texts;
  for (int i = 0; i < 50; i++) {
    std::string text;
    for (int k = 0; k < i % 11; k++) text += std::string(1, static_cast<char>('a' + (i * 7 + k * 3) % 8)) + " ";
    texts.push_back(text);
  }
  const Embeddings wanted = embedder.embed(texts);
  for (const int64_t batch_tokens : {1, 16, 100})
    EXPECT_EQ(embedder.embed(texts, {.batch_tokens = batch_tokens}).values, wanted.values) << batch_tokens;
  const int before = threads();
  for (const int count : {1, 3}) {
    set_threads(count);
    EXPECT_EQ(embedder.embed(texts).values, wanted.values) << count;
  }
  set_threads(before);
  for (size_t i = 0; i < texts.size(); i++) EXPECT_EQ(embedder.embed({texts[i]}).values, row(wanted, i)) << i;
  EXPECT_EQ(embedder.embed({}).values, std::vector<float>());
}

TEST_F(EmbedderTest, LongTextsAreTruncated) {
  const Embedder embedder(run());
  const std::string twelve = "a b c d e f g h a b c d";
  const Embeddings found = embedder.embed({twelve, twelve + " e", twelve + " f g h"});
  EXPECT_EQ(found.cut, 2);
  EXPECT_EQ(row(found, 1), row(found, 0));
  EXPECT_EQ(row(found, 2), row(found, 0));
  const Embeddings longer = embedder.embed({twelve + " e"}, {.max_length = 16});
  EXPECT_EQ(longer.cut, 0);
  EXPECT_NE(longer.values, row(found, 0));
  EXPECT_EQ(embedder.embed({"a b", "a c"}, {.max_length = 3}).cut, 2);
}

TEST_F(EmbedderTest, PrependsThePrefix) {
  const Embedder embedder(run());
  EXPECT_EQ(embedder.embed({"b c"}, {.prefix = "a "}).values, embedder.embed({"a b c"}).values);
}

TEST_F(EmbedderTest, TokensOfTextsHaveTheVectorsOfTheTexts) {
  const Embedder embedder(run());
  const std::vector<std::string> texts = {"a b", "", "a b c d e f g h a b c d e f", "[CLS] a [SEP]", "a"};
  for (const std::optional<std::string>& prefix : {std::optional<std::string>(), {"a "}, {"a b [SEP] "}})
    for (const int64_t max_length : {5, 14, 16}) {
      const EmbedOptions options{.prefix = prefix, .max_length = max_length};
      const std::vector<EmbedderTokens> encoded = embedder.tokens(texts, options);
      std::vector<std::vector<int32_t>> ids;
      int64_t cut = 0;
      for (const EmbedderTokens& text : encoded) {
        EXPECT_EQ(std::ssize(text.ids), std::min(text.all, max_length));
        ids.push_back(text.ids);
        cut += text.all > max_length;
      }
      const Embeddings wanted = embedder.embed(texts, options);
      const Embeddings found = embedder.embed_tokens(ids, {.prefix = "", .max_length = max_length});
      EXPECT_EQ(found.values, wanted.values);
      EXPECT_EQ(cut, wanted.cut);
    }
  EXPECT_EQ(embedder.tokens({"a b c"}).front().all, 5);
  EXPECT_EQ(error_of([&] {
              embedder.tokens({"a", "b\xFF"}, {.first_number = 7});
            }),
            "text 8: byte 2 is not valid UTF-8");
}

TEST_F(EmbedderTest, ErrorsNameTheTextOrTheOption) {
  const Embedder embedder(run());
  EXPECT_EQ(error_of([&] { embedder.embed({"a", "b\xFF"}); }), "text 2: byte 2 is not valid UTF-8");
  EXPECT_EQ(error_of([&] { embedder.embed({"\xFF"}, {.first_number = 7}); }), "text 7: byte 1 is not valid UTF-8");
  EXPECT_EQ(error_of([&] { embedder.embed({"a"}, {.max_length = 2}); }), "max_length must be between 3 and 16 (is 2)");
  EXPECT_EQ(error_of([&] { embedder.embed({"a"}, {.max_length = 17}); }),
            "max_length must be between 3 and 16 (is 17)");
  EXPECT_EQ(error_of([&] { embedder.embed({"a"}, {.batch_tokens = -1}); }),
            "batch_tokens must be between 0 and 16777216 (is -1)");
  EXPECT_EQ(error_of([&] { embedder.embed({"a"}, {.prefix = "\xC3"}); }), "prefix is not valid UTF-8");
  EXPECT_EQ(error_of([&] { Embedder("nowhere"); }), "nowhere: is not a run directory");
}

TEST_F(EmbedderTest, ErrorsNameTheFileOfABrokenRun) {
  const RunDirectory files(run());
  const EmbeddingConfig config = load_run<EncoderRun>(run()).embedding;
  const auto error_with = [&](auto&& change) {
    EmbeddingConfig changed = config;
    change(changed);
    write_fields(files.embedding(), changed);
    return error_of([&] { Embedder{run()}; });
  };
  EXPECT_EQ(error_with([](EmbeddingConfig& c) { c.max_length = 17; }),
            files.embedding() + ": max_length must be between 0 and 16, the model's (is 17)");
  EXPECT_EQ(error_with([](EmbeddingConfig& c) { c.start = "<x>"; }),
            files.embedding() + ": token \"<x>\" is not in the vocabulary");
  EXPECT_EQ(error_with([](EmbeddingConfig& c) { c.unknown = "<x>"; }),
            files.vocabulary() + ": the unknown token \"<x>\" is not in the vocabulary");
  EXPECT_EQ(error_with([](EmbeddingConfig& c) { c.unit = TextUnit::bytes; }),
            files.embedding() + ": token \"[CLS]\" is not in the vocabulary");
  std::filesystem::remove(files.embedding());
  testing::expect_contains(error_of([&] { Embedder{run()}; }), files.embedding());
}

TEST_F(EmbedderTest, AVectorThatIsNotFiniteIsAnError) {
  const RunDirectory files(run());
  EncoderRun encoder = load_run<EncoderRun>(run());
  ParameterList<float>& list = encoder.model->parameters();
  std::vector<float> values(list.values().begin(), list.values().end());
  const float* gain = testing::values_of(list, "encoder.layers.1.feed_forward_norm.weight");
  std::fill_n(values.begin() + (gain - list.values().data()), 12, std::numeric_limits<float>::max());
  save_weights(files.model(), list, values);
  EXPECT_EQ(error_of([&] { Embedder(run()).embed({"a"}); }), "text 1: the vector is not finite");
}

TEST_F(EmbedderTest, EightBitVectorsAreAlmostTheSame) {
  quantize_run(run(), directory_ / "int8");
  const Embeddings wanted = Embedder(run()).embed(BertCase::texts()),
                   found = Embedder(directory_ / "int8").embed(BertCase::texts());
  EXPECT_NE(found.values, wanted.values);
  for (size_t i = 0; i < BertCase::texts().size(); i++) {
    const std::vector<float> a = row(wanted, i), b = row(found, i);
    double cosine = 0;
    for (size_t k = 0; k < a.size(); k++) cosine += static_cast<double>(a[k]) * static_cast<double>(b[k]);
    EXPECT_GE(cosine, 0.99) << i;
  }
}

// The encoder of a translator, with the tokens around a source sentence.
TEST(Embedder, ReadsTheRunsOfTranslators) {
  const TempDir directory;
  const std::string path = testing::make_random_run(directory / "run");
  const TranslatorRun run = load_run<TranslatorRun>(path);
  const std::string text = testing::kText.front();
  std::vector<int32_t> ids = run.tokenizers.source.encode(text);
  ids.insert(ids.end(), run.tokens.source_after.begin(), run.tokens.source_after.end());
  Packed packed;
  packed.append(ids);
  Arena arena;
  Context context{.arena = arena, .inference = true};
  std::vector<float> wanted(to_size(run.model->config().d_model));
  pool_rows<float>(run.model->encode(packed, context), packed.offsets, Pooling::mean,
                   {wanted.data(), 1, std::ssize(wanted)});
  EXPECT_EQ(Embedder(path).embed({text}).values, wanted);
}

// The run of a random language model, whose last hidden states are the vectors.
class LanguageEmbedder : public ::testing::Test {
 protected:
  LanguageEmbedder() {
    config_ = testing::small_config();
    config_.encoder_layers = config_.source_vocab = 0;
    config_.shared_embeddings = false;
  }
  void write(int64_t V, const LanguageConfig& language, const TextCodec& codec = {}) {
    config_.target_vocab = V;
    model_.emplace(config_);
    testing::randomize(model_->parameters(), 1);
    create_run(run_, LanguageRun{config_, language, codec}, [&](const RunDirectory& partial) {
      save_weights(partial.model(), model_->parameters(), model_->parameters().values());
    });
  }
  std::vector<float> last_hidden(const std::vector<int32_t>& ids) const {
    Packed packed;
    packed.append(ids);
    Arena arena;
    Context context{.arena = arena, .inference = true};
    const Matrix<float> last = model_->last_hidden(packed, context);
    return {last.row(0), last.row(0) + config_.d_model};
  }

  TempDir directory_;
  RunDirectory run_{directory_ / "run"};
  ModelConfig config_;
  std::optional<Transformer<float>> model_;
};

TEST_F(LanguageEmbedder, TakesTheLastHiddenState) {
  write(257, {.unit = TextUnit::bytes});
  const Embedder embedder(run_.root());
  EXPECT_EQ(embedder.embed({"abc"}).values, last_hidden({256, 'a', 'b', 'c'}));
  const Embeddings long_text = embedder.embed({std::string(30, 'x')}, {.pooling = Pooling::mean});
  EXPECT_EQ(long_text.cut, 1);
  EXPECT_EQ(long_text.values.size(), 6U);
  EXPECT_EQ(error_of([&] { embedder.embed({"abc"}, {.max_length = 1}); }),
            "max_length must be between 2 and 20 (is 1)");
}

TEST_F(LanguageEmbedder, AddsAStartTokenOnlyIfTheTokenizerDoes) {
  TokenizerSpec spec = testing::byte_pieces();
  write(258, {.unit = TextUnit::byte_pieces, .start = "<end>", .ends = {"<end>"}},
        TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "spec")));
  EXPECT_EQ(Embedder(run_.root()).embed({"abc"}).values, last_hidden({256, 'c'}));
  EXPECT_EQ(Embedder(run_.root()).embed({""}).values, last_hidden({257}));
  spec.before = 257;
  write_codec(run_, TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "spec")));
  EXPECT_EQ(Embedder(run_.root()).embed({"abc"}).values, last_hidden({257, 256, 'c'}));
}

}  // namespace
}  // namespace qkv
