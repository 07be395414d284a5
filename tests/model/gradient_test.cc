// The whole model: gradients of every parameter against finite differences in float64, float32 against float64, and
// invariance to threads, recomputation and the split into batches.
#include <gtest/gtest.h>

#include <cstring>

#include "model/transformer.h"
#include "tests/model/model_cases.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::append_pair;
using testing::Case;
using testing::cases;
using testing::kSmoothing;
using testing::random_batch;
using testing::randomize;
using testing::relative_error;
using testing::sample_batch;
using testing::small_config;
using testing::SpoiledArena;
using testing::with_threads;

template <class Real>
struct Result {
  Loss loss;
  std::vector<Real> gradient;
};

template <class Real>
Result<Real> loss_and_gradient(const Transformer<Real>& model, const Batch& batch, Objective objective = {kSmoothing},
                               bool recompute = false) {
  SpoiledArena arena;
  Context context{arena, true, 3, 5, recompute};
  std::span<Real> gradients = model.parameters().gradients();
  std::fill(gradients.begin(), gradients.end(), Real(0));
  const Loss loss = model.loss_and_gradient(batch, objective, context);
  return {loss, {gradients.begin(), gradients.end()}};
}

template <class Real>
Result<Real> random_result(const Case& c, const Batch& batch, Objective objective = {kSmoothing}) {
  Transformer<Real> model(c.config, c.items);
  model.parameters().allocate_gradients();
  randomize(model.parameters(), 1);
  return loss_and_gradient(model, batch, objective);
}

// The error of a central difference with step h is about u · loss / h from rounding and h² times the third derivative.
void expect_gradients(const Case& c, Objective objective) {
  constexpr double h = 1e-5, u = 0x1p-53;
  constexpr int64_t every = 3;
  Transformer<double> model(c.config, c.items);
  model.parameters().allocate_gradients();
  randomize(model.parameters(), 1);
  const Batch batch = sample_batch(c.config, c.items);
  const Result<double> result = loss_and_gradient(model, batch, objective);
  SpoiledArena arena;
  Context context{arena, true, 3, 5};
  const auto loss = [&] {
    if (objective.r_drop > 0) return loss_and_gradient(model, batch, objective).loss.loss;
    return model.loss(batch, kSmoothing, context).loss;
  };
  EXPECT_NEAR(loss(), result.loss.loss, 1e-12 * result.loss.loss);

  for (const auto& p : model.parameters().all()) {
    const double* gradient = result.gradient.data() + (p.value - model.parameters().values().data());
    double difference = 0, size = 0;
    for (int64_t i = 0; i < p.size(); i += every) {
      const double kept = p.value[i];
      p.value[i] = kept + h;
      const double above = loss();
      p.value[i] = kept - h;
      const double below = loss();
      p.value[i] = kept;
      const double numeric = (above - below) / (2 * h);
      difference += (gradient[i] - numeric) * (gradient[i] - numeric);
      size += numeric * numeric;
    }
    const double rounding = std::sqrt(static_cast<double>(p.size())) * 10 * u * result.loss.loss / h;
    EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(size) + rounding) << p.name << " of size " << std::sqrt(size);
  }
}

TEST(Gradient, OfEveryParameterMatchesFiniteDifferences) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    with_threads(1, [&] { return expect_gradients(c, {kSmoothing}), 0; });
  }
}

// An encoder–decoder and a decoder-only model, with output biases and all kinds of dropout.
TEST(Gradient, OfRDropMatchesFiniteDifferences) {
  for (const Case& c : cases()) {
    if (c.name != "pre-norm, gelu, three tables" && c.name != "decoder only" &&
        c.name != "decoder only, the same, an output softcap")
      continue;
    SCOPED_TRACE(c.name);
    with_threads(1, [&] { return expect_gradients(c, {kSmoothing, 3}), 0; });
    const Batch batch = sample_batch(c.config, c.items);
    const Result<double> once = random_result<double>(c, batch),
                         twice = random_result<double>(c, batch, {kSmoothing, 3});
    EXPECT_GT(twice.loss.loss, once.loss.loss);  // the masks differ, so the divergence is positive
    EXPECT_EQ(twice.loss.tokens, once.loss.tokens);
  }
}

TEST(Gradient, OfRDropWithoutDropoutEqualsThatOfOnePass) {
  ModelConfig config = small_config();
  config.dropout.residual = 0;
  const Batch batch = sample_batch(config);
  const Result<double> once = random_result<double>({"", config}, batch),
                       twice = random_result<double>({"", config}, batch, {kSmoothing, 3});
  EXPECT_NEAR(twice.loss.loss, once.loss.loss, 1e-13 * once.loss.loss);
  EXPECT_LE(relative_error(twice.gradient, once.gradient), 1e-13);
}

// Each sublayer rounds about five times on the way forward and as often backward, each time over sums of at most 13
// terms: with u = 2^-24 and 14 sublayers the relative error stays below 14 · 2 · 5 · √13 · u.
TEST(Gradient, InFloatEqualsThatInDoubleUpToRounding) {
  const double tolerance = 14 * 2 * 5 * std::sqrt(13) * 0x1p-24;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Batch batch = sample_batch(c.config, c.items);
    const Result<float> single = random_result<float>(c, batch);
    const Result<double> exact = random_result<double>(c, batch);
    EXPECT_NEAR(single.loss.loss, exact.loss.loss, tolerance * exact.loss.loss);
    EXPECT_NEAR(single.loss.nll, exact.loss.nll, tolerance * exact.loss.nll);
    EXPECT_LE(relative_error(single.gradient, exact.gradient), tolerance);
  }
}

TEST(Gradient, HasTheSameBytesForAnyNumberOfThreads) {
  ModelConfig config = small_config();
  config.source_vocab = config.target_vocab = 500;
  config.d_model = 64;
  config.attention.heads = 4;
  config.attention.key_width = config.attention.value_width = 16;
  config.ffn = 192;
  config.dropout.attention = config.dropout.ffn = 0.1;
  const Batch batch = random_batch(config, std::vector<int64_t>(20, 13), std::vector<int64_t>(20, 17), 7);
  const auto run = [&](int count) {
    return with_threads(count, [&] { return random_result<float>({"", config}, batch); });
  };
  const Result<float> one = run(1), three = run(3);
  EXPECT_EQ(one.loss.loss, three.loss.loss);
  EXPECT_EQ(one.loss.nll, three.loss.nll);
  EXPECT_EQ(std::memcmp(one.gradient.data(), three.gradient.data(), one.gradient.size() * sizeof(float)), 0);
}

TEST(Gradient, HasTheSameBytesWithRecomputation) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Transformer<float> model(c.config, c.items);
    model.parameters().allocate_gradients();
    randomize(model.parameters(), 1);
    const Batch batch = sample_batch(c.config, c.items);
    const Result<float> kept = loss_and_gradient(model, batch),
                        again = loss_and_gradient(model, batch, {kSmoothing}, true);
    EXPECT_EQ(kept.loss.loss, again.loss.loss);
    EXPECT_EQ(std::memcmp(kept.gradient.data(), again.gradient.data(), kept.gradient.size() * sizeof(float)), 0);
  }
}

// Backward needs at least ten matrices [N, d] per layer; its input is one of them.
TEST(Gradient, NeedsAFractionOfTheMemoryWithRecomputation) {
  ModelConfig config = cases().front().config;
  config.encoder_layers = config.decoder_layers = 20;
  Transformer<float> model(config);
  model.parameters().allocate_gradients();
  const Batch batch = random_batch(config, std::vector<int64_t>(40, 13), std::vector<int64_t>(40, 17), 7);
  const auto bytes = [&](bool recompute) {
    Arena arena;
    Context context{arena, true, 3, 5, recompute};
    model.loss_and_gradient(batch, Objective{kSmoothing}, context);
    return arena.high_water();
  };
  EXPECT_LE(4 * bytes(true), bytes(false));
}

TEST(Gradient, OfTwoBatchesIsAccumulated) {
  const ModelConfig config = cases()[1].config;
  Transformer<double> model(config);
  model.parameters().allocate_gradients();
  randomize(model.parameters(), 1);
  const Batch batch = sample_batch(config);
  std::vector<double> once = loss_and_gradient(model, batch).gradient;
  SpoiledArena arena;
  Context context{arena, true, 3, 5};
  model.loss_and_gradient(batch, Objective{kSmoothing}, context);
  const std::span<double> twice = model.parameters().gradients();
  for (double& g : once) g *= 2;
  EXPECT_LE(relative_error(std::vector<double>(twice.begin(), twice.end()), once), 1e-14);
}

TEST(Loss, OfABatchIsTheSumOverItsPairs) {
  ModelConfig config = cases()[1].config;
  Transformer<double> model(config);
  randomize(model.parameters(), 1);
  SpoiledArena arena;
  Context context{arena};
  const std::vector<int64_t> S = {5, 1, 3}, T = {4, 2, 1};
  Batch together;
  Loss sum;
  for (size_t i = 0; i < S.size(); i++) {
    Random random(i, Stream::test);
    const std::vector<int32_t> x = testing::random_tokens(S[i] - 1, config.source_vocab, random),
                               y = testing::random_tokens(T[i] - 1, config.target_vocab, random);
    Batch alone;
    append_pair(alone, x, y);
    append_pair(together, x, y);
    sum += model.loss(alone, kSmoothing, context);
  }
  const Loss loss = model.loss(together, kSmoothing, context);
  EXPECT_NEAR(loss.loss, sum.loss, 1e-13 * sum.loss);
  EXPECT_NEAR(loss.nll, sum.nll, 1e-13 * sum.nll);
  EXPECT_EQ(loss.tokens, 7);
}

}  // namespace
}  // namespace qkv
