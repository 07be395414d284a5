// Models with a head for vectors or labels: gradients of every parameter against finite differences in float64, float32
// against float64, and the same bytes as the layers of inference.
#include "model/heads/text_head.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ops/dense_activation.h"
#include "ops/linear.h"
#include "ops/pooling.h"
#include "ops/row_linear.h"
#include "tests/model/text_head_cases.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::CurvedLoss;
using testing::error_of;
using testing::randomize_with_head;
using testing::relative_error;
using testing::SpoiledArena;
using testing::text_head_cases;
using testing::TextHeadCase;

const std::vector<int64_t> kTextLengths = {4, 1, 6, 2};

template <class Real>
struct HeadGradient {
  double loss = 0;
  std::vector<Real> gradient;
};

template <class Real>
HeadGradient<Real> head_gradient(const Transformer<Real>& model, const Batch& batch, bool recompute = false) {
  SpoiledArena arena;
  Context context{arena, true, 3, 5, recompute};
  const std::span<Real> gradients = model.parameters().gradients();
  std::ranges::fill(gradients, Real(0));
  const CurvedLoss<Real> loss_of(model);
  const Loss loss = model.text_loss_and_gradient(batch, loss_of, context);
  EXPECT_EQ(loss_of.calls, 1);
  return {loss.loss, {gradients.begin(), gradients.end()}};
}

template <class Real>
HeadGradient<Real> head_gradient(const TextHeadCase& c) {
  Transformer<Real> model(c.config, {}, c.head);
  model.parameters().allocate_gradients();
  randomize_with_head(model, 1);
  return head_gradient(model, testing::random_texts(c.config, kTextLengths));
}

// The error of a central difference with step h is about u · loss / h from rounding and h² times the third derivative.
void expect_head_gradients(const TextHeadCase& c) {
  constexpr double h = 1e-5, u = 0x1p-53;
  Transformer<double> model(c.config, {}, c.head);
  model.parameters().allocate_gradients();
  randomize_with_head(model, 1);
  const Batch batch = testing::random_texts(c.config, kTextLengths);
  const HeadGradient<double> found = head_gradient(model, batch);
  SpoiledArena arena;
  const auto loss = [&] {
    const Arena::Scope scope(arena);
    Context context{arena, true, 3, 5};
    return CurvedLoss<double>(model)(model.text_outputs(batch, context), {}).loss;
  };
  EXPECT_NEAR(loss(), found.loss, 1e-12 * std::abs(found.loss));  // the dropout masks are the same
  for (const auto& p : model.parameters().all()) {
    const double* gradient = found.gradient.data() + (p.value - model.parameters().values().data());
    double difference = 0, size = 0;
    for (int64_t i = 0; i < p.size(); i += 2) {
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
    const double rounding = std::sqrt(static_cast<double>(p.size())) * 10 * u * std::max(1.0, std::abs(found.loss)) / h;
    EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(size) + rounding) << p.name << " of size " << std::sqrt(size);
  }
}

TEST(TextHead, GradientOfEveryParameterMatchesFiniteDifferences) {
  for (const TextHeadCase& c : text_head_cases()) {
    SCOPED_TRACE(c.name);
    testing::with_threads(1, [&] { return expect_head_gradients(c), 0; });
  }
}

// As in gradient_test.cc, with two sublayers for the head: u = 2^-24.
TEST(TextHead, GradientInFloatEqualsThatInDoubleUpToRounding) {
  const double tolerance = 16 * 2 * 5 * std::sqrt(13) * 0x1p-24;
  for (const TextHeadCase& c : text_head_cases()) {
    SCOPED_TRACE(c.name);
    const HeadGradient<float> single = head_gradient<float>(c);
    const HeadGradient<double> exact = head_gradient<double>(c);
    EXPECT_LE(relative_error(single.gradient, exact.gradient), tolerance);
  }
}

TEST(TextHead, GradientHasTheSameBytesForAnyNumberOfThreadsAndWithRecomputation) {
  for (const TextHeadCase& c : text_head_cases()) {
    SCOPED_TRACE(c.name);
    Transformer<float> model(c.config, {}, c.head);
    model.parameters().allocate_gradients();
    randomize_with_head(model, 1);
    const Batch batch = testing::random_texts(c.config, std::vector<int64_t>(40, 7));
    const auto run = [&](int threads, bool recompute) {
      return testing::with_threads(threads, [&] { return head_gradient(model, batch, recompute); });
    };
    const HeadGradient<float> one = run(1, false);
    for (const HeadGradient<float>& other : {run(3, false), run(1, true)}) {
      EXPECT_EQ(one.loss, other.loss);
      EXPECT_EQ(one.gradient, other.gradient);
    }
  }
}

// Inference pools and applies a head that is loaded from a file of its own.
TEST(TextHead, OutputsHaveTheBytesOfThePoolingAndTheHeadOfInference) {
  for (const TextHeadCase& c : text_head_cases()) {
    SCOPED_TRACE(c.name);
    Transformer<float> model(c.config, {}, c.head);
    randomize_with_head(model, 1);
    const Batch batch = testing::random_texts(c.config, kTextLengths);
    SpoiledArena arena;
    Context context{.arena = arena, .inference = true};
    const Packed& texts = c.config.has_encoder() ? batch.source : batch.target;
    const Matrix<float> outputs = model.text_outputs(batch, context), h = model.hidden(texts, context);
    Matrix<float> v = arena.matrix<float>(texts.sequences(), h.cols);
    pool_rows<float>(h, texts.offsets, c.head.pooling, v);
    const auto with = [&](auto& head) {
      for (const auto& p : head.parameters().all())
        std::copy_n(testing::values_of(model.parameters(), p.name), p.size(), p.value);
      v = head.forward(v, context);
    };
    StandaloneDense dense(c.head.dense);
    StandaloneLabelHead labels(c.config, c.head.labels);
    if (c.head.kind == TextHeadConfig::Kind::labels)
      with(labels);
    else if (!c.head.dense.empty())
      with(dense);
    ASSERT_EQ(outputs.cols, v.cols);
    EXPECT_EQ(std::memcmp(outputs.data, v.data, to_size(v.rows * v.cols) * sizeof(float)), 0);
  }
}

// z = φ(v W_1ᵀ + b_1) W_2ᵀ + b_2, op by op.
TEST(TextHead, OfLabelsHasTheBytesOfItsOps) {
  const ModelConfig config = testing::text_encoder_config();
  StandaloneLabelHead head(config, LabelHeadShape{3});
  testing::randomize(head.parameters(), 2);
  Arena arena;
  Context context{.arena = arena, .inference = true};
  std::vector<float> v = testing::normal<float>(5 * 6, 3), hidden(5 * 6), z(5 * 3);
  const auto value = [&](const char* name) { return testing::values_of(head.parameters(), name); };
  const Matrix<float> h(hidden.data(), 5, 6);
  row_linear<float>({v.data(), 5, 6}, {value("head.dense.weight"), 6, 6}, value("head.dense.bias"), h, arena);
  dense_activation<float>(DenseActivation::tanh, h, h);
  row_linear<float>(h, {value("head.output.weight"), 3, 6}, value("head.output.bias"), {z.data(), 5, 3}, arena);
  const Matrix<float> found = head.forward({v.data(), 5, 6}, context);
  EXPECT_EQ(std::vector<float>(found.data, found.data + 15), z);
  EXPECT_EQ(count_parameters(config, LabelHeadShape{3}), head.parameters().size());
}

// v ← φ_0(v W_0ᵀ + b_0), then without an activation and a bias.
TEST(TextHead, OfDenseLayersHasTheBytesOfItsOps) {
  StandaloneDense dense(
      std::vector<DenseShape>{{DenseActivation::gelu, 6, 8}, {DenseActivation::identity, 8, 4, false}});
  testing::randomize(dense.parameters(), 2);
  Arena arena;
  Context context{.arena = arena, .inference = true};
  std::vector<float> v = testing::normal<float>(5 * 6, 3), hidden(5 * 8), expected(5 * 4);
  const auto value = [&](const char* name) { return testing::values_of(dense.parameters(), name); };
  const Matrix<float> h(hidden.data(), 5, 8);
  row_linear<float>({v.data(), 5, 6}, {value("dense.0.weight"), 8, 6}, value("dense.0.bias"), h, arena);
  dense_activation<float>(DenseActivation::gelu, h, h);
  row_linear<float>(h, {value("dense.1.weight"), 4, 8}, nullptr, {expected.data(), 5, 4}, arena);
  const Matrix<float> found = dense.forward({v.data(), 5, 6}, context);
  EXPECT_EQ(std::vector<float>(found.data, found.data + 20), expected);
}

TEST(TextHead, HasTheLastParametersOfTheModel) {
  const TextHeadCase c = text_head_cases()[1];
  const Transformer<float> model(c.config, {}, c.head), trunk(c.config);
  const auto &all = model.parameters().all(), &expected = trunk.parameters().all();
  ASSERT_EQ(model.trunk_parameters(), std::ssize(expected));
  EXPECT_EQ(trunk.trunk_parameters(), std::ssize(expected));
  EXPECT_EQ(trunk.text_head(), nullptr);
  for (size_t i = 0; i < expected.size(); i++) EXPECT_EQ(all[i].name, expected[i].name);
  std::vector<std::string> own;
  for (size_t i = expected.size(); i < all.size(); i++) own.push_back(all[i].name);
  EXPECT_EQ(own, (std::vector<std::string>{"dense.0.weight", "dense.0.bias", "dense.1.weight", "dense.2.weight",
                                           "dense.2.bias", "temperature"}));
  EXPECT_EQ(model.text_head()->width(), 4);
  EXPECT_EQ(model.make_replica()->parameters().size(), model.parameters().size());
}

// Without dropout of the head, its two passes have no masks.
TEST(TextHead, DropsValuesInTrainingOnly) {
  TextHeadCase c = text_head_cases()[3];
  c.config.dropout = {};
  c.config.dropout.residual = 0;
  const auto outputs = [&](double dropout, bool training, uint64_t seed) {
    c.head.dropout = dropout;
    Transformer<float> model(c.config, {}, c.head);
    randomize_with_head(model, 1);
    Arena arena;
    Context context{arena, training, seed, 5};
    const Matrix<float> z = model.text_outputs(testing::random_texts(c.config, kTextLengths), context);
    return std::vector<float>(z.data, z.data + z.rows * z.cols);
  };
  EXPECT_EQ(outputs(0, true, 3), outputs(0, false, 3));
  EXPECT_EQ(outputs(0.3, false, 3), outputs(0, false, 3));
  EXPECT_NE(outputs(0.3, true, 3), outputs(0, false, 3));
  EXPECT_NE(outputs(0.3, true, 3), outputs(0.3, true, 4));
  EXPECT_EQ(outputs(0.3, true, 3), outputs(0.3, true, 3));
}

TEST(TextHead, RefusesWhatItCannotCompute) {
  using Kind = TextHeadConfig::Kind;
  const auto error = [](const ModelConfig& config, const TextHeadConfig& head) {
    return error_of([&] { Transformer<float>(config, {}, head); });
  };
  const ModelConfig encoder = testing::text_encoder_config();
  EXPECT_EQ(error(testing::small_config(), {.kind = Kind::vectors}),
            "text head: the model must be an encoder or a decoder alone (has 2 encoder and 2 decoder layers)");
  EXPECT_EQ(error(encoder, {.kind = Kind::vectors, .dense = {{DenseActivation::tanh, 7, 3}}}),
            "text head: dense layer 0 must have 6 inputs (has 7)");
  EXPECT_EQ(error(encoder, {.kind = Kind::vectors, .dense = {{DenseActivation::tanh, 6, 0}}}),
            "text head: dense layer 0 must have at least 1 output (has 0)");
  EXPECT_EQ(error(encoder, {.kind = Kind::labels}), "text head: must have at least 1 label (has 0)");
  EXPECT_EQ(error(encoder, {.kind = Kind::labels, .labels = {2}, .dropout = 1}),
            "text head: dropout must be at least 0 and below 1 (is 1)");
  ModelConfig bert = encoder;
  bert.token_head = TokenHead::dense;
  bert.tied_output = true;
  EXPECT_EQ(error(bert, {.kind = Kind::labels, .labels = {2}}),
            "text head: token_head must be none or output for a model with labels (is dense)");
  EXPECT_NO_THROW(Transformer<float>(bert, {}, {.kind = Kind::vectors}));
  EXPECT_EQ(error_of([&] { Transformer<Device<float>>(encoder, {}, {.kind = Kind::vectors}); }),
            "text head: is computed on the cpu alone");

  SpoiledArena arena;
  Context context{arena};
  const Transformer<float> model(encoder, {}, {.kind = Kind::vectors}), headless(encoder);
  const Batch texts = testing::random_texts(encoder, {3});
  EXPECT_EQ(error_of([&] {
              model.text_outputs(testing::random_texts(encoder, {3, 0, 2}), context);
            }),
            "batch: text 1 has no tokens");
  EXPECT_EQ(error_of([&] { headless.text_outputs(texts, context); }), "model: has no text head");
  const auto no_loss = [](Matrix<const float>, Matrix<float>) { return Loss(); };
  EXPECT_EQ(error_of([&] { headless.text_loss_and_gradient(texts, no_loss, context); }), "model: has no text head");
}

}  // namespace
}  // namespace qkv
