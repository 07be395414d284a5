// Low-rank adapters and frozen parameters: gradients against finite differences in float64, and the model with the
// update added to its weights.
#include <gtest/gtest.h>

#include "core/to_size.h"
#include "model/transformer.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/numeric.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using Adapters = std::vector<Transformer<double>::Adapter>;

constexpr double kUpdateScale = 1.5;

ModelConfig decoder_with_window() {
  ModelConfig c = testing::small_config();
  c.encoder_layers = c.source_vocab = 0;
  c.shared_embeddings = false;
  c.gated_ffn = true;
  c.activation = Activation::silu;
  c.norm.position = NormPosition::pre;
  c.norm.final = true;
  c.attention.window = 3;
  return c;
}

// Adapters of single weights, of neighbours, and of the two sides of cross-attention.
Adapters adapters_of(const ModelConfig& config) {
  const std::string self = "decoder.layers.1.self_attention.", ffn = "decoder.layers.0.feed_forward.";
  Adapters all = {{"a", {self + "q.weight", self + "k.weight", self + "v.weight"}},
                  {"b", {self + "output.weight"}},
                  {"c", {ffn + "second.weight"}},
                  {"d", {ffn + "first.weight"}}};
  const std::string cross = "decoder.layers.0.cross_attention.";
  if (config.has_encoder())
    for (const char* part : {"q", "v"}) all.push_back({cross + part, {cross + part + ".weight"}});
  if (config.gated_ffn) all.push_back({"e", {"decoder.layers.1.feed_forward.gate.weight"}});
  return all;
}

Batch adapter_batch(const ModelConfig& config) {
  return testing::random_batch(config, std::vector<int64_t>{5, 1, 3}, std::vector<int64_t>{4, 2, 1}, 7);
}

void prepare_adapters(Transformer<double>& model) {
  model.add_adapters(adapters_of(model.config()), 2, kUpdateScale);
  model.trained().allocate_gradients();
  model.parameters().allocate_gradients();
  testing::randomize(model.parameters(), 1);
  testing::randomize(model.trained(), 2);
}

double loss_of(const Transformer<double>& model, const Batch& batch) {
  testing::SpoiledArena arena;
  Context context{arena, true, 3, 5};
  return model.loss(batch, 0.1, context).loss;
}

TEST(Adapters, GradientsMatchFiniteDifferences) {
  for (ModelConfig config : {testing::small_config(), decoder_with_window()}) {
    config.dropout = {0.2, 0.1, 0.2};
    Transformer<double> model(config);
    prepare_adapters(model);
    const Batch batch = adapter_batch(config);
    testing::SpoiledArena arena;
    Context context{arena, true, 3, 5};
    model.loss_and_gradient(batch, Objective{0.1}, context);
    const auto loss = [&] { return loss_of(model, batch); };
    testing::expect_gradient(model.trained().values(), model.trained().gradients(), loss);
    for (const auto& p : model.parameters().all()) EXPECT_EQ(p.gradient == nullptr, p.shape.size() == 2) << p.name;
  }
}

TEST(Adapters, ComputeTheModelWithTheUpdateAddedToItsWeights) {
  for (const ModelConfig& config : {testing::small_config(), decoder_with_window()}) {
    Transformer<double> model(config), merged(config);
    prepare_adapters(model);
    testing::randomize(merged.parameters(), 1);
    const Batch batch = adapter_batch(config);
    EXPECT_GT(std::abs(loss_of(model, batch) - loss_of(merged, batch)), 0.01);
    for (const Transformer<double>::Adapter& adapter : adapters_of(config)) {
      const Matrix<double> A{testing::values_of(model.trained(), adapter.name + ".lora_A.weight"), 2, 0};
      const double* B = testing::values_of(model.trained(), adapter.name + ".lora_B.weight");
      for (const std::string& name : adapter.parameters) {
        const auto p = std::ranges::find(merged.parameters().all(), name, &Parameter<double>::name);
        for (int64_t o = 0; o < p->shape[0]; o++, B += 2)
          for (int64_t i = 0; i < p->shape[1]; i++)
            p->value[o * p->shape[1] + i] += kUpdateScale * (B[0] * A.data[i] + B[1] * A.data[p->shape[1] + i]);
      }
    }
    EXPECT_NEAR(loss_of(model, batch), loss_of(merged, batch), 1e-12 * loss_of(merged, batch));
  }
}

TEST(Adapters, NeedWeightsOfOneLinearLayer) {
  const auto error = [](std::vector<std::string> parameters) {
    return testing::error_of([&] {
      Transformer<double> model(testing::small_config());
      model.add_adapters({{"m", std::move(parameters)}}, 2, 1);
    });
  };
  const std::string self = "encoder.layers.0.self_attention.";
  EXPECT_EQ(error({"encoder.layers.9.x.weight"}), "adapter m: the model has no such weight: encoder.layers.9.x.weight");
  EXPECT_EQ(error({self + "q.weight", self + "v.weight"}),
            "adapter m: the model has no such weight: " + self + "v.weight");
  EXPECT_EQ(error({self + "v.weight", self + "output.weight"}),
            "adapter m: the model has no such weight: " + self + "output.weight");
  EXPECT_EQ(error({self + "q.bias"}), "adapter m: the model has no such weight: " + self + "q.bias");
}

// The others get the gradients that they have without freezing.
TEST(FrozenParameters, HaveNoGradientsOfMatrices) {
  const ModelConfig config = testing::small_config();
  const Batch batch = adapter_batch(config);
  Transformer<double> whole(config), part(config);
  const auto is_frozen = [](const std::string& name) {
    return name == "embedding.weight" || name.starts_with("encoder.layers.0") || name.ends_with(".q.weight");
  };
  part.parameters().freeze([&](const Parameter<double>& p) { return is_frozen(p.name); });
  for (Transformer<double>* model : {&whole, &part}) {
    model->parameters().allocate_gradients();
    testing::randomize(model->parameters(), 1);
    testing::SpoiledArena arena;
    Context context{arena};
    model->loss_and_gradient(batch, Objective{0.1}, context);
  }
  EXPECT_LT(part.parameters().gradients().size(), whole.parameters().gradients().size());
  for (size_t i = 0; i < whole.parameters().all().size(); i++) {
    const Parameter<double>&p = part.parameters().all()[i], &q = whole.parameters().all()[i];
    const bool with_neighbours = p.name.ends_with(".q.weight") && !p.name.starts_with("encoder.layers.0");
    EXPECT_EQ(p.gradient != nullptr, !p.frozen || p.shape.size() == 1 || with_neighbours) << p.name;
    for (int64_t e = 0; p.gradient && e < p.size(); e++) ASSERT_EQ(p.gradient[e], q.gradient[e]) << p.name;
  }
}

}  // namespace
}  // namespace qkv
