// The files of a model with a text head that is trained: the weights of the trunk, and those of the head in a file of
// its own, from which a run is loaded.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/runs/run.h"
#include "io/runs/text_head_file.h"
#include "io/weights/safetensors.h"
#include "ops/pooling.h"
#include "tests/model/text_head_cases.h"
#include "tests/support/errors.h"
#include "tests/support/numeric.h"
#include "tests/support/temp_dir.h"
#include "train/engine/device_engine.h"
#include "train/engine/host_engine.h"
#include "train/loop/trained_model.h"

namespace qkv {
namespace {

using testing::CurvedLoss;
using testing::error_of;
using testing::TempDir;
using Kind = TextHeadConfig::Kind;

Recipe recipe_with(const TextHeadConfig& head) {
  Recipe recipe;
  recipe.model = testing::text_encoder_config();
  recipe.head = head;
  return recipe;
}

ClassifierRun parts_of(const ModelConfig& config, std::vector<std::string> dense = {}) {
  ClassifierRun run;
  run.config = config;
  run.embedding.unit = TextUnit::characters;
  run.embedding.dense = std::move(dense);
  run.codec = TextCodec::of_characters({"a", "b"}, "test");
  run.classification.labels = {"x", "y"};
  return run;
}

// Trains a head from initial weights by no step, and writes the model.
template <class Run>
Run write_and_load(const Run& parts, const Recipe& recipe, const std::string& path, TrainedModel& trained) {
  std::ranges::copy(trained.model().parameters().values(), trained.candidate_values().begin());
  create_run(RunDirectory(path), parts, [&](const RunDirectory& to) {
    trained.write_candidate(to);
    write_text_head(to, trained.candidate());
    const Safetensors model = Safetensors::open(to.model());
    EXPECT_EQ(std::ssize(model.names()), trained.model().trunk_parameters());
  });
  EXPECT_EQ(recipe.head.kind == Kind::labels, std::filesystem::exists(RunDirectory(path).classifier()));
  return load_run<Run>(path);
}

// Returns the pooled hidden states that a run computes, [texts, d].
template <class Run>
Matrix<float> pooled(const Run& run, const Batch& batch, Pooling pooling, Context& c) {
  const Matrix<float> h = run.model->hidden(batch.source, c);
  const Matrix<float> v = c.arena.template matrix<float>(batch.source.sequences(), h.cols);
  pool_rows<float>(h, batch.source.offsets, pooling, v);
  return v;
}

void expect_same_bytes(Matrix<const float> a, Matrix<const float> b) {
  ASSERT_EQ(a.cols, b.cols);
  for (int64_t n = 0; n < a.rows; n++) EXPECT_TRUE(std::equal(a.row(n), a.row(n) + a.cols, b.row(n))) << n;
}

TEST(TextHeadFiles, OfLabelsAreReadAsAClassifier) {
  const TempDir directory;
  const Recipe recipe = recipe_with({.kind = Kind::labels, .pooling = Pooling::first, .labels = {2}, .dropout = 0.1});
  TrainedModel trained(recipe, RunDirectory(directory / "none"), true);
  const ClassifierRun run = write_and_load(parts_of(recipe.model), recipe, directory / "run", trained);
  Arena arena;
  Context context{.arena = arena, .inference = true};
  const Batch batch = testing::random_texts(recipe.model, {4, 2, 7});
  const Matrix<float> v = pooled(run, batch, Pooling::first, context);
  expect_same_bytes(run.head->forward(v, context), trained.candidate().text_outputs(batch, context));
}

// As after a process was killed when it had written the weights and not yet the head.
TEST(TextHeadFiles, OfOtherWeightsAreRefused) {
  const TempDir directory;
  const Recipe recipe = recipe_with({.kind = Kind::labels, .pooling = Pooling::first, .labels = {2}});
  TrainedModel trained(recipe, RunDirectory(directory / "none"), true);
  const std::string path = directory / "run";
  write_and_load(parts_of(recipe.model), recipe, path, trained);
  trained.candidate_values().back() += 1;
  trained.write_candidate(RunDirectory(path));
  EXPECT_EQ(error_of([&] { load_run<ClassifierRun>(path); }),
            path + "/classifier.safetensors: is not the head of " + path +
                "/model.safetensors: training ended between writing the two; resume it to write both");
  write_text_head(RunDirectory(path), trained.candidate());
  load_run<ClassifierRun>(path);
}

TEST(TextHeadFiles, OfVectorsAreReadAsAnEncoder) {
  const TempDir directory;
  const Recipe recipe =
      recipe_with({.kind = Kind::vectors, .dense = {{DenseActivation::tanh, 6, 4, false}}, .temperature = true});
  TrainedModel trained(recipe, RunDirectory(directory / "none"), true);
  const EncoderRun parts = parts_of(recipe.model, {"tanh"});
  const EncoderRun run = write_and_load(parts, recipe, directory / "run", trained);
  Arena arena;
  Context context{.arena = arena, .inference = true};
  const Batch batch = testing::random_texts(recipe.model, {4, 2, 7});
  const Matrix<float> v = pooled(run, batch, Pooling::mean, context);
  expect_same_bytes(run.dense->forward(v, context), trained.candidate().text_outputs(batch, context));
}

TEST(TextHeadFiles, OfVectorsWithoutLayersAreNotWritten) {
  const TempDir directory;
  const Recipe recipe = recipe_with({.kind = Kind::vectors, .temperature = true});
  TrainedModel trained(recipe, RunDirectory(directory / "none"), true);
  const EncoderRun parts = parts_of(recipe.model);
  EXPECT_EQ(write_and_load(parts, recipe, directory / "run", trained).dense, nullptr);
  EXPECT_FALSE(std::filesystem::exists(RunDirectory(directory / "run").dense()));
}

// A task without slices or a table of its own.
class TextTask : public Task {
 public:
  std::string fingerprint() const override { return ""; }
  void partition(const RankPartition&) override {}
  bool seek(const StreamPosition&) override { return true; }
  const StreamPosition& position() const override { return position_; }
  void next() override {}
  void skip() override {}
  double part_of_epoch() const override { return 0; }
  double batches_per_epoch() const override { return 1; }
  std::string summary() const override { return ""; }
  Loss loss_and_gradient(BatchGradients&, Context&) override { return {}; }
  std::string places(const StreamPosition&, TokenSide, std::span<const int64_t>) override { return ""; }
  DevScore evaluate(const Transformer<float>&, Arena&) override { return {}; }
  Metric metric() const override { return {}; }
  void dry_run(BatchGradients&, const Transformer<float>&, Arena&) override {}

 private:
  StreamPosition position_;
};

TEST(TextHeadFiles, HostGradientsAreThoseOfTheModel) {
  const testing::TextHeadCase c = testing::text_head_cases()[1];
  Transformer<float> model(c.config, {}, c.head);
  model.parameters().allocate_gradients();
  testing::randomize_with_head(model, 1);
  const Batch batch = testing::random_texts(c.config, {4, 2, 7, 3});
  TextTask task;
  HostGradients engine(model, task);
  const CurvedLoss<float> loss_of(model);
  const auto gradient = [&](auto&& compute) {
    Arena arena;
    Context context{arena};
    std::ranges::fill(model.parameters().gradients(), 0.0f);
    EXPECT_EQ(compute(context).tokens, 4);
    return std::vector<float>(model.parameters().gradients().begin(), model.parameters().gradients().end());
  };
  const auto whole = gradient([&](Context& context) { return model.text_loss_and_gradient(batch, loss_of, context); });
  const auto at_once =
      gradient([&](Context& context) { return engine.loss_and_gradient(batch, loss_of, 100, context); });
  const auto parts = gradient([&](Context& context) { return engine.loss_and_gradient(batch, loss_of, 5, context); });
  EXPECT_EQ(at_once, whole);
  EXPECT_LE(testing::relative_error(parts, whole), 1e-6);
}

TEST(TextHeadFiles, AreNotTrainedOnADevice) {
  EXPECT_EQ(error_of([] { check_for_device(recipe_with({.kind = Kind::vectors})); }),
            "embedders and classifiers cannot be trained on a device");
}

}  // namespace
}  // namespace qkv
