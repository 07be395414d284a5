// qkv::quantize_run copies every file of a run but the weights, and leaves nothing behind when it fails.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/system/file_descriptor.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "io/weights/quantized_weights.h"
#include "qkv/runs.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

class QuantizeRun : public ::testing::Test {
 protected:
  void create(int64_t width_of_heads) const {
    const auto list = [](std::vector<std::string> pieces) {
      return Tokenizer::with_pieces({}, std::move(pieces), "<unk>", "list");
    };
    ModelConfig config = testing::small_config();
    config.attention.key_width = config.attention.value_width = width_of_heads / config.attention.heads;
    config.source_vocab = 4, config.target_vocab = 5;
    config.shared_embeddings = false;
    TranslationConfig translation;
    translation.lowercase = true;
    translation.source_end = "a", translation.never = {"b", "<s>"};
    Transformer<float> model(config);
    testing::randomize(model.parameters(), 1);
    const TokenizerPair tokenizers{list({"<unk>", "<s>", "</s>", "a"}), list({"<s>", "</s>", "<unk>", "b", "c"})};
    TranslatorRun parts{config, tokenizers, translation};
    parts.abbreviations = {"abt"};
    create_run(RunDirectory(run), parts, [&](const RunDirectory& partial) {
      save_weights(partial.model(), model.parameters(), model.parameters().values());
      DecodingDefaults decoding;
      decoding.beam = 3;
      write_decoding_defaults(partial, decoding);
    });
  }

  testing::TempDir directory;
  std::string run = directory / "run";
};

TEST_F(QuantizeRun, CopiesTheFilesOfATranslator) {
  create(8);
  const QuantizeReport report = quantize_run(run + "/");
  EXPECT_EQ(report.out, run + "-int8");
  const int64_t mib = 1 << 20;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename();
    if (name == "model.safetensors") continue;
    EXPECT_EQ(read_file(report.out + "/" + name, mib), read_file(run + "/" + name, mib)) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(run), {}), std::distance(fs::directory_iterator(report.out), {}));
  const TranslatorRun before = load_run<TranslatorRun>(run), after = load_run<TranslatorRun>(report.out);
  EXPECT_EQ(after.abbreviations, std::vector<std::string>{"abt"});
  EXPECT_EQ(count_int8(after.model->parameters()), 6);  // the output of each attention has 8 columns
  EXPECT_EQ(report.int8_matrices, 6);
  EXPECT_EQ(report.bytes_before, 4 * before.model->parameters().size());
  EXPECT_EQ(report.bytes, report.bytes_before - 6 * (3 * 6 * 8 - 6 * 8));
}

TEST_F(QuantizeRun, CopiesTheFilesOfARecommender) {
  testing::create_recommender(run, testing::small_log(20));
  const QuantizeReport report = quantize_run(run);
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename();
    if (name == "model.safetensors") continue;
    EXPECT_EQ(read_file(report.out + "/" + name, 1 << 20), read_file(run + "/" + name, 1 << 20)) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(run), {}), std::distance(fs::directory_iterator(report.out), {}));
  const RecommenderRun after = load_run<RecommenderRun>(report.out);
  EXPECT_EQ(count_int8(after.model->parameters()), report.int8_matrices);
  EXPECT_EQ(after.model->output().weight().int8.values.rows, 20);
  EXPECT_EQ(error_of([&] { quantize_run(report.out); }), report.out + "/model.safetensors: is quantized already");
}

TEST_F(QuantizeRun, LeavesNothingBehindAfterAnError) {
  create(6);
  EXPECT_EQ(error_of([&] { quantize_run(run); }),
            run + "/model.safetensors: has no matrix whose number of columns is a multiple of 4");
  fs::create_directory_symlink("nowhere", directory / "out");
  EXPECT_EQ(error_of([&] { quantize_run(run, directory / "out"); }), directory / "out" + ": already exists");
  fs::remove(run + "/model.safetensors");
  EXPECT_EQ(error_of([&] { quantize_run(run); }), run + "/model.safetensors: No such file or directory");
  EXPECT_EQ(error_of([&] { quantize_run(directory / "none"); }), directory / "none" + ": is not a run directory");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 2);
}

}  // namespace
}  // namespace qkv
