// The layers of imported encoders that predict masked tokens: losses and gradients equal to those of transformers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/to_size.h"
#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "qkv/import.h"
#include "tests/support/bert_case.h"
#include "tests/support/errors.h"
#include "tests/support/numeric.h"
#include "tests/support/rewrite_tensors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::TempDir;

// The expected gradients are kept in float32, and transformers computes the angles of rotary positions in float32. The
// rest is float64 on both sides.
constexpr double kGradientTolerance = 16 * 0x1p-24;
const std::string kMasked = QKV_GOLDEN_DIR "/masked/";

const char* const kMaskedCases[] = {"pretraining", "roberta", "distilbert", "mpnet",
                                    "modernbert",  "albert",  "electra",    "esm"};

std::string masked_source(const std::string& name) {
  const std::string own = kMasked + name;
  return std::filesystem::exists(own) ? own : QKV_GOLDEN_DIR "/bert/" + name;
}

// The texts, masked tokens and labels of a case, and the sum of the losses.
struct MaskedAnswer {
  explicit MaskedAnswer(const std::string& name) {
    const json answer = json::parse(testing::slurp(kMasked + "expected.json")).at(name);
    loss = answer.at("loss");
    for (size_t t = 0; t < answer.at("ids").size(); t++) {
      const int32_t begin = batch.source.offsets.back();
      batch.source.append(answer.at("ids")[t].get<std::vector<int32_t>>());
      for (const int32_t place : answer.at("masked")[t]) batch.masked.push_back(begin + place);
      for (const int32_t label : answer.at("labels")[t]) batch.labels.push_back(label);
    }
  }
  Batch batch;
  double loss = 0;
};

template <class Real>
void load(const std::string& run, Transformer<Real>& model) {
  const Safetensors file = Safetensors::open(run + "/model.safetensors");
  for (const Parameter<Real>& p : model.parameters().all()) {
    std::vector<float> values(to_size(p.size()));
    file.read(p.name, p.shape, values);
    std::copy(values.begin(), values.end(), p.value);
  }
}

class MaskedHeads : public ::testing::TestWithParam<const char*> {};

// The gradients are imported like weights, so that they get our names.
TEST_P(MaskedHeads, LossAndGradientsAreThoseOfTransformers) {
  const std::string name = GetParam();
  const TempDir directory;
  const ImportReport report = import_model(masked_source(name), directory / "run", testing::listed_tokens());
  EXPECT_EQ(report.config.token_head, TokenHead::dense);
  EXPECT_TRUE(report.config.tied_output && report.config.output_bias);
  std::filesystem::create_directory(directory / "gradients");
  for (const auto& file : std::filesystem::directory_iterator(masked_source(name)))
    if (file.path().filename() == "config.json" || file.path().filename().string().starts_with("vocab"))
      std::filesystem::copy(file, directory / "gradients");
  std::filesystem::copy(kMasked + name + ".safetensors", directory / "gradients/model.safetensors");
  import_model(directory / "gradients", directory / "expected", testing::listed_tokens());

  const MaskedAnswer answer(name);
  Transformer<double> model(report.config), expected(report.config);
  load(directory / "run", model);
  load(directory / "expected", expected);
  model.parameters().allocate_gradients();
  Arena arena;
  Context context{.arena = arena};
  const Loss loss = model.loss_and_gradient(answer.batch, Objective{}, context);
  EXPECT_NEAR(loss.loss, answer.loss, kGradientTolerance * answer.loss);
  for (size_t i = 0; i < model.parameters().all().size(); i++) {
    const Parameter<double>&p = model.parameters().all()[i], &q = expected.parameters().all()[i];
    double difference = 0, size = 0;
    for (int64_t k = 0; k < p.size(); k++) {
      difference += (p.gradient[k] - q.value[k]) * (p.gradient[k] - q.value[k]);
      size += q.value[k] * q.value[k];
    }
    EXPECT_LE(std::sqrt(difference), kGradientTolerance * std::sqrt(size) + 1e-12) << p.name;
  }

  Transformer<float> single(report.config);
  load(directory / "run", single);
  Context inference{.arena = arena, .inference = true};
  EXPECT_NEAR(single.loss(answer.batch, 0, inference).loss, answer.loss, 1e-5 * answer.loss);
}

INSTANTIATE_TEST_SUITE_P(Of, MaskedHeads, ::testing::ValuesIn(kMaskedCases),
                         [](const auto& model) { return std::string(model.param); });

// A copy of BERT with its head, in one file.
class MaskedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(masked_source("distilbert"), model(), std::filesystem::copy_options::recursive);
  }
  std::string model() const { return directory_ / "model"; }
  ImportReport imported() const {
    std::filesystem::remove_all(directory_ / "run");
    return import_model(model(), directory_ / "run", testing::listed_tokens());
  }
  void change(const std::string& member, const json& value) const {
    json object = json::parse(testing::slurp(model() + "/config.json"));
    object[member] = value;
    testing::spill(model() + "/config.json", object.dump());
  }
  // Adds a copy of a tensor in float32, whose first number may be changed.
  void add(const std::string& name, const std::string& from, bool changes) const {
    testing::rewrite_tensors(model() + "/model.safetensors", [&](std::vector<testing::Tensor>& tensors) {
      testing::Tensor copy = *std::ranges::find(tensors, from, &testing::Tensor::name);
      copy.name = name;
      float first;
      std::memcpy(&first, copy.bytes.data(), sizeof first);
      if (changes) first += 1;
      std::memcpy(copy.bytes.data(), &first, sizeof first);
      std::erase_if(tensors, [&](const testing::Tensor& t) { return t.name == name; });
      tensors.push_back(copy);
    });
  }

  TempDir directory_;
};

TEST_F(MaskedFiles, MayHaveAnOutputTableOfTheirOwn) {
  const std::string table = "distilbert.embeddings.word_embeddings.weight", output = "vocab_projector.weight";
  EXPECT_TRUE(imported().config.tied_output);
  add(output, table, false);
  EXPECT_TRUE(imported().config.tied_output);
  change("tie_word_embeddings", false);
  EXPECT_FALSE(imported().config.tied_output);
  change("tie_word_embeddings", true);
  add(output, table, true);
  EXPECT_FALSE(imported().config.tied_output);
  std::vector<float> own(13 * 12), tied(13 * 12);
  const Safetensors run = Safetensors::open(directory_ / "run/model.safetensors");
  run.read("output.weight", {13, 12}, own);
  run.read("source_embedding.weight", {13, 12}, tied);
  EXPECT_EQ(own[0], tied[0] + 1);
  EXPECT_TRUE(std::equal(own.begin() + 1, own.end(), tied.begin() + 1));
}

TEST_F(MaskedFiles, AreImportedWithoutAHeadThatTheModelCannotExpress) {
  add("classifier.weight", "vocab_transform.weight", false);  // the same layers belong to another head
  ImportReport report = imported();
  EXPECT_EQ(report.config.token_head, TokenHead::none);
  EXPECT_FALSE(report.config.tied_output || report.config.output_bias);
  EXPECT_EQ(report.notes,
            (std::vector<std::string>{"left out: classifier, vocab_layer_norm, vocab_projector, vocab_transform (not "
                                      "needed for hidden states)"}));
  std::filesystem::remove_all(model());
  std::filesystem::copy(masked_source("roberta"), model(), std::filesystem::copy_options::recursive);
  EXPECT_EQ(imported().config.token_head, TokenHead::dense);
  change("hidden_act", "relu");  // the head has the exact GELU
  EXPECT_EQ(imported().config.token_head, TokenHead::none);
  std::filesystem::remove_all(model());
  std::filesystem::copy(masked_source("modernbert"), model(), std::filesystem::copy_options::recursive);
  EXPECT_EQ(imported().config.token_head, TokenHead::dense);
  change("classifier_activation", "tanh");
  EXPECT_EQ(imported().config.token_head, TokenHead::none);
}

}  // namespace
}  // namespace qkv
