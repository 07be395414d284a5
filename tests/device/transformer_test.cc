// Models in the memory of a device: losses and gradients are those of the host. QKV_TEST_DEVICE chooses the device.
#include "model/transformer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/to_size.h"
#include "model/layers/finite_check.h"
#include "model/layers/sampled_loss.h"
#include "tests/device/device_case.h"
#include "tests/model/model_cases.h"
#include "tests/support/models.h"
#include "tests/support/numeric.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::Case;
using testing::cases;
using testing::kBfloat16Tolerance;
using testing::kFloatTolerance;
using testing::kSmoothing;
using testing::numbers_of;
using testing::relative_error;
using testing::sample_batch;
using testing::SpoiledDeviceArena;
using testing::TestDevice;

struct Result {
  Loss loss;
  std::vector<double> gradient;
};

std::vector<double> doubles(std::span<const float> x) { return {x.begin(), x.end()}; }

// Weights that elements of a device hold without rounding.
template <class T>
std::vector<float> random_weights(const Case& c) {
  Transformer<float> model(c.config, c.items);
  testing::randomize(model.parameters(), 1);
  const std::span<float> values = model.parameters().values();
  for (float& x : values) x = T(x);
  return {values.begin(), values.end()};
}

Result on_host(const Case& c, std::span<const float> weights, const Batch& batch, Objective objective) {
  Transformer<double> model(c.config, c.items);
  model.parameters().allocate_gradients();
  std::ranges::copy(weights, model.parameters().values().begin());
  testing::SpoiledArena arena;
  Context context{arena, true, 3, 5};
  const Loss loss = model.loss_and_gradient(batch, objective, context);
  const std::span<double> g = model.parameters().gradients();
  return {loss, {g.begin(), g.end()}};
}

template <class T>
Result on_device(const Case& c, std::span<const float> weights, const Batch& batch, Objective objective,
                 bool recompute = false, FiniteCheck* check = nullptr) {
  Transformer<Device<T>> model(c.config, c.items);
  model.parameters().allocate_gradients();
  testing::set(model.parameters(), weights);
  testing::clear_gradients(model.parameters());
  SpoiledDeviceArena<T> arena;
  Context context{arena, true, 3, 5, recompute};
  context.probe = check;
  const Loss loss = model.loss_and_gradient(batch, objective, context);
  return {loss, doubles(numbers_of(model.parameters().gradients()))};
}

void expect_near(const Result& device, const Result& host, double tolerance) {
  EXPECT_NEAR(device.loss.loss, host.loss.loss, tolerance * host.loss.loss);
  EXPECT_NEAR(device.loss.nll, host.loss.nll, tolerance * host.loss.nll);
  EXPECT_LE(relative_error(device.gradient, host.gradient), tolerance);
}

// The masks of dropout are the same, otherwise the losses would differ.
TEST(DeviceTransformer, LossesAndGradientsInFloat32AreThoseOfTheHost) {
  const TestDevice device;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Batch batch = sample_batch(c.config, c.items);
    const std::vector<float> weights = random_weights<float>(c);
    expect_near(on_device<float>(c, weights, batch, {kSmoothing}), on_host(c, weights, batch, {kSmoothing}),
                kFloatTolerance);
  }
}

// The derivative of relu jumps, so a rounding can change a gradient by any amount: only the loss is compared. The same
// model has another activation for the gradient.
TEST(DeviceTransformer, LossesAndGradientsInBfloat16AreThoseOfTheHost) {
  const TestDevice device;
  for (Case c : cases()) {
    SCOPED_TRACE(c.name);
    const Batch batch = sample_batch(c.config, c.items);
    const std::vector<float> weights = random_weights<bfloat16>(c);
    const Loss exact = on_host(c, weights, batch, {kSmoothing}).loss;
    EXPECT_NEAR(on_device<bfloat16>(c, weights, batch, {kSmoothing}).loss.loss, exact.loss,
                kBfloat16Tolerance * exact.loss);
    if (c.config.activation == Activation::relu) c.config.activation = Activation::gelu;
    expect_near(on_device<bfloat16>(c, weights, batch, {kSmoothing}), on_host(c, weights, batch, {kSmoothing}),
                kBfloat16Tolerance);
  }
}

TEST(DeviceTransformer, RDropIsThatOfTheHost) {
  const TestDevice device;
  for (const Case& c : cases()) {
    if (c.name != "pre-norm, gelu, three tables" && c.name != "decoder only, the same, an output softcap") continue;
    SCOPED_TRACE(c.name);
    const Batch batch = sample_batch(c.config, c.items);
    const std::vector<float> weights = random_weights<float>(c);
    expect_near(on_device<float>(c, weights, batch, {kSmoothing, 3}), on_host(c, weights, batch, {kSmoothing, 3}),
                2 * kFloatTolerance);  // two passes
  }
}

TEST(DeviceTransformer, HasTheSameBytesAgainAndWithRecomputation) {
  const TestDevice device;
  const Case c = cases().front();
  const Batch batch = sample_batch(c.config, c.items);
  const std::vector<float> weights = random_weights<bfloat16>(c);
  const Result once = on_device<bfloat16>(c, weights, batch, {kSmoothing}),
               again = on_device<bfloat16>(c, weights, batch, {kSmoothing}),
               recomputed = on_device<bfloat16>(c, weights, batch, {kSmoothing}, true);
  for (const Result& other : {again, recomputed}) {
    EXPECT_EQ(once.loss.loss, other.loss.loss);
    EXPECT_EQ(once.gradient, other.gradient);
  }
}

// The check sees products before their epilogue, which has to see them unrounded.
TEST(DeviceTransformer, ChecksOfFiniteNumbersChangeNoByte) {
  const TestDevice device;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Batch batch = sample_batch(c.config, c.items);
    const std::vector<float> weights = random_weights<bfloat16>(c);
    FiniteCheck check;
    const Result plain = on_device<bfloat16>(c, weights, batch, {kSmoothing}),
                 checked = on_device<bfloat16>(c, weights, batch, {kSmoothing}, false, &check);
    EXPECT_FALSE(check.found());
    EXPECT_EQ(plain.loss.loss, checked.loss.loss);
    EXPECT_EQ(plain.gradient, checked.gradient);
  }
}

// A recommender with sampled losses: of each token, and shared by the batch.
template <class Real>
Loss sampled_loss_of(Transformer<Real>& model, const Batch& batch, ItemLoss kind, bool shared, Context& c) {
  const std::vector<int32_t> negatives = {1, 3, 3, 8};
  const std::vector<float> log_draws = {-0.5f, 0.25f, 0.25f, -1};
  std::vector<int32_t> candidates;
  std::vector<float> candidate_draws;
  for (const int32_t label : batch.labels) {
    candidates.push_back(label);
    candidates.insert(candidates.end(), negatives.begin(), negatives.end());
    candidate_draws.push_back(-0.75f);
    candidate_draws.insert(candidate_draws.end(), log_draws.begin(), log_draws.end());
  }
  const auto N = std::ssize(batch.labels);
  const auto loss_of = [&](Matrix<const Real> h, Matrix<Real> dh) {
    const Parameter<Real>& table = model.output().weight();
    if (shared)
      return shared_loss_and_gradient<Real>(table, h, batch.labels, {negatives, log_draws}, {kind, 0.7}, dh, c);
    return sampled_loss_and_gradient<Real>(table, h, {{candidates.data(), N, 5}, candidate_draws}, {kind, 0.7}, dh, c);
  };
  return model.loss_and_gradient(batch, loss_of, c);
}

TEST(DeviceTransformer, SampledLossesAreThoseOfTheHost) {
  const TestDevice device;
  for (const Case& c : cases()) {
    if (c.name != "decoder only") continue;
    const Batch batch = sample_batch(c.config, c.items);
    const std::vector<float> weights = random_weights<float>(c);
    for (const ItemLoss kind : {ItemLoss::sampled_softmax, ItemLoss::gbce})
      for (const bool shared : {false, true}) {
        Transformer<double> exact(c.config, c.items);
        exact.parameters().allocate_gradients();
        std::ranges::copy(weights, exact.parameters().values().begin());
        testing::SpoiledArena arena;
        Context context{arena, true, 3, 5};
        const Loss loss = sampled_loss_of(exact, batch, kind, shared, context);
        const std::span<double> g = exact.parameters().gradients();

        Transformer<Device<float>> model(c.config, c.items);
        model.parameters().allocate_gradients();
        testing::set(model.parameters(), weights);
        testing::clear_gradients(model.parameters());
        SpoiledDeviceArena<float> memory;
        Context on_device{memory, true, 3, 5};
        const Loss found = sampled_loss_of(model, batch, kind, shared, on_device);
        expect_near({found, doubles(numbers_of(model.parameters().gradients()))}, {loss, {g.begin(), g.end()}},
                    kFloatTolerance);
      }
    return;
  }
  FAIL() << "no case is decoder only";
}

TEST(DeviceTransformer, CandidatesAreUploadedOnce) {
  static size_t uploads;
  static const qkv_device& plugin = load_device(testing::tested_plugin());
  qkv_device table = plugin;
  table.upload = [](void* to, const void* from, size_t n) {
    static constexpr int32_t kNegatives[] = {1, 3, 3, 8};  // of sampled_loss_of, maybe after a label
    for (const size_t begin : {size_t{0}, sizeof(int32_t)})
      if (n >= begin + sizeof kNegatives &&
          std::memcmp(static_cast<const char*>(from) + begin, kNegatives, sizeof kNegatives) == 0)
        uploads++;
    return plugin.upload(to, from, n);
  };
  const Accelerator device(table);
  for (const Case& c : cases()) {
    if (c.name != "decoder only") continue;
    const Batch batch = sample_batch(c.config, c.items);
    Transformer<Device<float>> model(c.config, c.items);
    model.parameters().allocate_gradients();
    testing::set(model.parameters(), random_weights<float>(c));
    testing::clear_gradients(model.parameters());
    SpoiledDeviceArena<float> memory;
    Context context{memory, true, 3, 5};
    for (const bool shared : {false, true}) {
      uploads = 0;
      sampled_loss_of(model, batch, ItemLoss::gbce, shared, context);
      EXPECT_EQ(uploads, 1u);
    }
    return;
  }
  FAIL() << "no case is decoder only";
}

TEST(DeviceTransformer, AdaptersAreTrainedAsOnTheHost) {
  const TestDevice device;
  const Case c = cases().front();
  const Batch batch = sample_batch(c.config, c.items);
  const std::vector<float> weights = random_weights<float>(c);
  const auto with_adapter = [&]<class Real>(Transformer<Real>& model) {
    model.add_adapters(
        {{"a", {"encoder.layers.0.self_attention.q.weight", "encoder.layers.0.self_attention.k.weight"}}}, 2, 0.5);
    model.trained().allocate_gradients();
    model.parameters().allocate_gradients();
  };
  Transformer<float> single(c.config);
  with_adapter(single);
  testing::randomize(single.trained(), 4);
  const std::span<float> adapter = single.trained().values();

  Transformer<double> exact(c.config);
  with_adapter(exact);
  std::ranges::copy(weights, exact.parameters().values().begin());
  std::ranges::copy(adapter, exact.trained().values().begin());
  testing::SpoiledArena arena;
  Context context{arena, true, 3, 5};
  const Loss loss = exact.loss_and_gradient(batch, Objective{kSmoothing}, context);
  const std::span<double> g = exact.trained().gradients();

  Transformer<Device<float>> model(c.config);
  with_adapter(model);
  testing::set(model.parameters(), weights);
  testing::set(model.trained(), adapter);
  testing::clear_gradients(model.trained());
  SpoiledDeviceArena<float> memory;
  Context on_device{memory, true, 3, 5};
  const Loss found = model.loss_and_gradient(batch, Objective{kSmoothing}, on_device);
  expect_near({found, doubles(numbers_of(model.trained().gradients()))}, {loss, {g.begin(), g.end()}}, kFloatTolerance);
}

TEST(DeviceTransformer, DecodingTokenByTokenGivesTheHiddenStatesOfAWholePass) {
  const TestDevice device;
  for (const Case& c : cases()) {
    if (!c.config.is_decoder_only() || c.items.gap_buckets > 0) continue;
    SCOPED_TRACE(c.name);
    Transformer<Device<float>> model(c.config, c.items);
    testing::set(model.parameters(), random_weights<float>(c));
    const std::vector<int32_t> ids = {1, 7, 3, 3, 9, 11, 4};
    Packed text;
    text.append(ids);
    SpoiledDeviceArena<float> arena;
    Context context{arena};
    Transformer<Device<float>>::Saved whole;
    model.forward({}, text, context, whole);
    const std::vector<float> expected = numbers_of(whole.h);

    context.inference = true;
    std::vector<Layer<Device<float>>::Cache> caches;
    for (const auto& layer : model.decoder().layers())
      caches.push_back({arena.matrix<Device<float>>(7, layer.self_attention().keys_values_width()), {}});
    std::vector<float> found;
    for (int32_t t = 0; t < 7; t++) {
      const std::vector<int32_t> rows = {0, 1, 2, 3, 4, 5, 6}, begin = {0}, end = {t + 1};
      const std::span<const int32_t> row = std::span(rows).subspan(to_size(t), 1);
      const auto h =
          model.step({std::span(ids).subspan(to_size(t), 1), row, row, {rows.data(), begin.data(), end.data()}, {}},
                     caches, context);
      const std::vector<float> numbers = numbers_of(h);
      found.insert(found.end(), numbers.begin(), numbers.end());
    }
    EXPECT_LE(relative_error(doubles(found), doubles(expected)), kFloatTolerance);
  }
}

TEST(DeviceTransformer, ChecksOfFiniteNumbersNameThePlaceThatTheyNameOnTheHost) {
  const TestDevice device;
  const Case c = cases().front();
  const Batch batch = sample_batch(c.config, c.items);
  std::vector<float> weights = random_weights<float>(c);
  weights[weights.size() / 2] = std::numeric_limits<float>::infinity();
  const auto check_of = [&]<class Real>(Transformer<Real>& model, Arena& arena) {
    FiniteCheck check;
    Context context{arena, true, 3, 5};
    context.probe = &check;
    model.loss_and_gradient(batch, Objective{kSmoothing}, context);
    return check;
  };
  Transformer<float> host(c.config);
  host.parameters().allocate_gradients();
  std::ranges::copy(weights, host.parameters().values().begin());
  Arena arena;
  const FiniteCheck expected = check_of(host, arena);
  Transformer<Device<float>> model(c.config);
  model.parameters().allocate_gradients();
  testing::set(model.parameters(), weights);
  testing::clear_gradients(model.parameters());
  SpoiledDeviceArena<float> memory;
  const FiniteCheck found = check_of(model, memory);
  ASSERT_TRUE(expected.found() && found.found());
  EXPECT_EQ(found.found()->place, expected.found()->place);
  EXPECT_EQ(found.found()->rows, expected.found()->rows);
}

}  // namespace
}  // namespace qkv
