// The whole model: gradients of every parameter against finite differences in float64, float32 against float64, and
// invariance to threads, recomputation and the split into batches.
#include <gtest/gtest.h>

#include <cstring>

#include "core/to_size.h"
#include "model/transformer.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::append_pair;
using testing::error_of;
using testing::random_batch;
using testing::randomize;
using testing::relative_error;
using testing::small_config;
using testing::SpoiledArena;
using testing::with_threads;

constexpr double kSmoothing = 0.1;

Batch sample_batch(const ModelConfig& config, const ItemInputs& items = {}) {
  return random_batch(config, std::vector<int64_t>{5, 1, 3}, std::vector<int64_t>{4, 2, 1}, 7, items);
}

struct Case {
  std::string name;
  ModelConfig config;
  ItemInputs items = {};
};

// Together they cover every option of a ModelConfig.
std::vector<Case> cases() {
  ModelConfig post = small_config();
  post.dropout.residual = 0.2;
  post.dropout.attention = 0.15;
  post.dropout.ffn = 0.25;

  ModelConfig pre = post;
  pre.norm.position = NormPosition::pre;
  pre.norm.final = true;
  pre.activation = Activation::gelu;
  pre.shared_embeddings = false;
  pre.source_vocab = 11;
  pre.tied_output = false;
  pre.output_bias = true;

  ModelConfig silu = post;
  silu.activation = Activation::silu;
  silu.norm.final = true;
  silu.shared_embeddings = false;
  silu.attention.input_bias = silu.attention.output_bias = false;
  silu.output_bias = true;
  silu.encoder_layers = 1;
  silu.dropout.residual = silu.dropout.attention = silu.dropout.ffn = 0;

  ModelConfig learned = post;
  learned.positions = Positions::learned;
  learned.embedding_norm = true;
  learned.zero_start = true;
  learned.scale_embeddings = false;

  ModelConfig query = pre;
  query.norm.position = NormPosition::query;

  ModelConfig alone = post;
  alone.encoder_layers = alone.source_vocab = 0;
  alone.shared_embeddings = false;
  ModelConfig alone_query = query;
  alone_query.encoder_layers = alone_query.source_vocab = 0;
  alone_query.positions = Positions::learned;
  ModelConfig gaps = alone_query;
  gaps.embedding_norm = true;

  ModelConfig rotary = post;
  rotary.positions = Positions::rotary;
  rotary.attention.key_width = 4;
  ModelConfig alone_rotary = alone_query;
  alone_rotary.positions = Positions::rotary;
  alone_rotary.attention.key_width = 4;

  // Options newer than the paper: those of Llama, and the others.
  ModelConfig modern = post;
  modern.encoder_layers = modern.source_vocab = 0;
  modern.shared_embeddings = false;
  modern.norm.kind = NormKind::rms;
  modern.norm.position = NormPosition::pre;
  modern.norm.final = true;
  modern.positions = Positions::rotary;
  modern.rotary.base = 100;
  modern.rotary.scale = 2;
  modern.attention.heads = 4;
  modern.attention.key_value_heads = 2;
  modern.attention.key_width = 4;
  modern.activation = Activation::silu;
  modern.gated_ffn = true;
  modern.ffn_bias = modern.attention.input_bias = modern.attention.output_bias = false;
  ModelConfig capped = pre;
  capped.norm.kind = NormKind::layer_no_bias;
  capped.positions = Positions::alibi;
  capped.attention.heads = 3;
  capped.attention.key_value_heads = 1;
  capped.attention.key_width = 8;  // a norm of fewer numbers bends too much for finite differences
  capped.attention.softcap = 1.5;
  capped.attention.scale = 0.4;
  capped.attention.window = 2;
  capped.attention.query_key_norm = true;
  capped.gated_ffn = true;
  capped.activation = Activation::gelu_tanh;
  ModelConfig alone_capped = capped;
  alone_capped.encoder_layers = alone_capped.source_vocab = 0;
  ModelConfig placeless = modern;
  placeless.positions = Positions::none;
  placeless.attention.window = 3;
  placeless.attention.query_key_norm = true;
  placeless.norm.position = NormPosition::query;

  // GPT-NeoX and Phi: part of each head is rotated, and the sublayers run in parallel.
  ModelConfig neox = alone_rotary;
  neox.norm.position = NormPosition::pre;
  neox.sublayers = Sublayers::parallel;
  neox.attention.key_width = 7;
  neox.rotary.width = 4;
  ModelConfig phi = neox;
  phi.sublayers = Sublayers::parallel_shared_norm;
  phi.attention.heads = 4;
  phi.attention.key_value_heads = 2;
  phi.rotary.width = 2;
  phi.activation = Activation::gelu_tanh;

  // T5: a relative bias instead of positions. MPNet: in addition to them.
  ModelConfig t5 = pre;
  t5.norm.kind = NormKind::rms;
  t5.positions = Positions::none;
  t5.attention.scale = 1;
  t5.attention.relative_buckets = 7;
  t5.attention.relative_distance = 4;
  t5.attention.input_bias = t5.attention.output_bias = t5.ffn_bias = false;
  t5.gated_ffn = true;
  t5.activation = Activation::gelu_tanh;
  ModelConfig relative = alone_capped;
  relative.attention.relative_buckets = 4;
  relative.attention.relative_distance = 30;
  relative.positions = Positions::learned;
  // OLMo 2, Gemma 2 and 3, SmolLM 3, ModernBERT: other places of norms, and layers that differ.
  ModelConfig branch = modern;
  branch.norm.position = NormPosition::branch;
  branch.attention.query_key_norm = branch.attention.query_key_norm_over_heads = true;
  ModelConfig sandwich = rotary;
  sandwich.norm.position = NormPosition::sandwich;
  sandwich.norm.final = true;
  sandwich.encoder_layers = sandwich.decoder_layers = 3;
  sandwich.attention.window = 2;
  sandwich.attention.layer_pattern = "gln";
  sandwich.rotary.local_base = 50;
  sandwich.rotary.scale = 3;
  sandwich.output_softcap = 1.5;
  ModelConfig alone_sandwich = sandwich;
  alone_sandwich.encoder_layers = alone_sandwich.source_vocab = 0;
  alone_sandwich.shared_embeddings = false;
  ModelConfig first = alone_sandwich;
  first.norm.position = NormPosition::pre;
  first.norm.first = false;
  first.embedding_norm = true;
  first.attention.layer_pattern = "lg";

  ModelConfig halves = post;
  halves.positions = Positions::closed_halves;

  // ALBERT: projected embeddings, shared layers, token types.
  ModelConfig projected = learned;
  projected.embedding_width = 8;  // a norm of fewer numbers bends too much for finite differences
  projected.token_types = 3;
  projected.shared_layers = true;
  projected.encoder_layers = 3;
  projected.tied_output = false;
  ModelConfig alone_projected = alone_rotary;
  alone_projected.embedding_width = 9;
  alone_projected.shared_layers = true;
  return {{"post-norm, relu, one table", post},
          {"pre-norm, gelu, three tables", pre},
          {"silu, no biases", silu},
          {"learned positions, a norm after them, no start embedding", learned},
          {"positions in halves", halves},
          {"query-norm", query},
          {"decoder only", alone},
          {"decoder only, query-norm", alone_query},
          {"time gaps, a norm after them", gaps, {.gap_buckets = 4}},
          {"rotary positions", rotary},
          {"decoder only, query-norm, rotary positions", alone_rotary},
          {"decoder only, RMSNorm, SwiGLU, shared keys, scaled rotary positions", modern},
          {"ALiBi, softcap, window, norms of queries and keys, a gate", capped},
          {"decoder only, the same", alone_capped},
          {"decoder only, no positions, query-norm, norms of queries and keys", placeless},
          {"a relative bias, no positions, unscaled scores", t5},
          {"decoder only, a relative bias with learned positions, softcap and window", relative},
          {"parallel sublayers, partly rotated heads", neox},
          {"parallel sublayers with one norm, partly rotated shared keys", phi},
          {"norms of branches and of all queries and keys", branch},
          {"norms around sublayers, three kinds of layers, an output softcap", sandwich},
          {"decoder only, the same, an output softcap", alone_sandwich},
          {"no norm before the first layer, two kinds of layers", first},
          {"projected embeddings, token types, shared layers", projected},
          {"decoder only, projected embeddings, shared layers", alone_projected}};
}

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

TEST(Transformer, LastHiddenIsTheLastRowOfForward) {
  for (const Case& c : cases()) {
    if (!c.config.is_decoder_only()) continue;
    SCOPED_TRACE(c.name);
    Transformer<double> model(c.config, c.items);
    randomize(model.parameters(), 1);
    const Batch batch =
        testing::random_batch(c.config, std::vector<int64_t>{1, 1, 1}, std::vector<int64_t>{5, 1, 7}, 2, c.items);
    SpoiledArena arena;
    Context context{arena};
    Transformer<double>::Saved s;
    model.forward(batch.source, batch.target, context, s);
    const Matrix<double> last = model.last_hidden(batch.target, context);
    ASSERT_EQ(last.rows, 3);
    for (int64_t i = 0; i < 3; i++)
      for (int64_t d = 0; d < last.cols; d++)
        EXPECT_NEAR(last(i, d), s.h(batch.target.offsets[to_size(i) + 1] - 1, d), 1e-13);
  }
}

TEST(Transformer, DecodingTokenByTokenGivesTheHiddenStatesOfAWholePass) {
  for (const Case& c : cases()) {
    if (!c.config.is_decoder_only() || c.items.gap_buckets > 0) continue;
    SCOPED_TRACE(c.name);
    Transformer<double> model(c.config, c.items);
    randomize(model.parameters(), 1);
    const std::vector<int32_t> ids = {1, 7, 3, 3, 9, 11, 4};
    Packed text;
    text.append(ids);
    SpoiledArena arena;
    Context context{arena};
    Transformer<double>::Saved whole;
    model.forward({}, text, context, whole);

    context.inference = true;
    std::vector<Layer<double>::Cache> caches;
    for (const Layer<double>& layer : model.decoder().layers())
      caches.push_back({arena.matrix<double>(7, layer.self_attention().keys_values_width()), {}});
    for (int32_t t = 0; t < 7; t++) {
      const std::vector<int32_t> rows = {0, 1, 2, 3, 4, 5, 6}, begin = {0}, end = {t + 1};
      const std::span<const int32_t> row = std::span(rows).subspan(to_size(t), 1);
      const Matrix<double> h =
          model.step({std::span(ids).subspan(to_size(t), 1), row, row, {rows.data(), begin.data(), end.data()}, {}},
                     caches, context);
      for (int64_t d = 0; d < h.cols; d++) EXPECT_NEAR(h(0, d), whole.h(t, d), 1e-13) << t;
    }
  }
}

// Queries and keys are rotated by angles proportional to their positions, so only distances matter.
TEST(Transformer, RotaryPositionsAreRelative) {
  ModelConfig config = small_config();
  config.encoder_layers = config.source_vocab = 0;
  config.shared_embeddings = false;
  config.positions = Positions::rotary;
  config.attention.key_width = 4;
  Transformer<double> model(config);
  randomize(model.parameters(), 1);
  SpoiledArena arena;
  Context context{arena};
  const std::vector<int32_t> ids = {5, 3, 9, 4}, swapped = {3, 5, 9, 4};
  const auto last = [&](const std::vector<int32_t>& tokens, int64_t first_position) {
    Packed packed;
    packed.append(tokens, first_position);
    const Matrix<double> h = model.last_hidden(packed, context);
    return std::vector<double>(h.data, h.data + h.cols);
  };
  EXPECT_LE(testing::max_error(last(ids, 0), last(ids, 16)), 1e-13);
  EXPECT_GE(testing::max_error(last(ids, 0), last(swapped, 0)), 1e-3);
}

// x + attention(n) + ffn(m): the change of x is the sum of the changes in two sequential layers, in each of which the
// other sublayer returns zeros.
TEST(Layer, ParallelSublayersAddWhatEachAddsAlone) {
  for (const Case& c : cases()) {
    if (c.config.sublayers == Sublayers::sequential) continue;
    SCOPED_TRACE(c.name);
    const auto added = [&](Sublayers sublayers, const std::string& silenced) {
      ModelConfig config = c.config;
      config.sublayers = sublayers;
      DropoutSites sites;
      ParameterList<double> list;
      const RotaryTable<double> table(config);
      const Layer<double> layer(list, "l", 0, config, {Causal::top_left, false}, sites, &table);
      list.allocate();
      for (const Parameter<double>& p : list.all()) {
        Random random(std::hash<std::string>()(p.name), Stream::test);
        for (int64_t i = 0; i < p.size(); i++) p.value[i] = random.normal();
        if (!silenced.empty() && p.name.starts_with(silenced)) std::fill_n(p.value, p.size(), 0.0);
      }
      if (c.config.sublayers == Sublayers::parallel_shared_norm && sublayers == Sublayers::sequential)
        for (const std::string part : {"weight", "bias"})
          std::copy_n(testing::values_of(list, "l.self_attention_norm." + part), config.d_model,
                      testing::values_of(list, "l.feed_forward_norm." + part));
      SpoiledArena arena;
      Context context{arena};
      const std::vector<int32_t> positions = {0, 1, 2, 0, 1}, begin = {0, 3}, end = {3, 5};
      context.positions = positions;
      const std::vector<double> x = testing::normal<double>(5 * config.d_model, 1);
      typename Layer<double>::Saved saved;
      const Matrix<double> y =
          layer.forward(Matrix<const double>(x.data(), 5, config.d_model), {},
                        Sequences{2, begin.data(), end.data(), begin.data(), end.data()}, {}, context, saved);
      std::vector<double> sum(y.data, y.data + y.rows * y.cols);
      for (size_t i = 0; i < sum.size(); i++) sum[i] -= x[i];
      return sum;
    };
    std::vector<double> both = added(c.config.sublayers, "");
    const std::vector<double> attention = added(Sublayers::sequential, "l.feed_forward.second"),
                              ffn = added(Sublayers::sequential, "l.self_attention.output");
    for (size_t i = 0; i < both.size(); i++) both[i] -= attention[i] + ffn[i];
    EXPECT_LE(testing::max_error(both, std::vector<double>(both.size())), 1e-13);
    EXPECT_NE(attention, ffn);
  }
}

TEST(Transformer, LayersShareOneTableOfRotaryPositions) {
  ModelConfig config = small_config();
  config.positions = Positions::rotary;
  config.attention.key_width = 4;
  config.encoder_layers = config.decoder_layers = 500;
  config.max_length = int64_t{1} << 21;  // a table of 32 MiB, too large to have one per layer
  EXPECT_NO_THROW(Transformer<float>{config});
}

TEST(Transformer, LastHiddenRejectsEncodersAndEmptySequences) {
  ModelConfig config = small_config();
  SpoiledArena arena;
  Context context{arena};
  Packed empty;
  empty.append({});
  EXPECT_EQ(error_of([&] { Transformer<double>(config).last_hidden(empty, context); }),
            "model: must be decoder-only (encoder_layers is 2)");
  config.encoder_layers = config.source_vocab = 0;
  config.shared_embeddings = false;
  EXPECT_EQ(error_of([&] { Transformer<double>(config).last_hidden(empty, context); }),
            "batch: target sequence 0 has no tokens");
}

TEST(Transformer, HiddenStatesDoNotDependOnLaterTargetTokens) {
  const ModelConfig config = small_config();
  Transformer<double> model(config);
  randomize(model.parameters(), 1);
  SpoiledArena arena;
  Context context{arena};
  Packed source, target, changed;
  source.append(std::vector<int32_t>{5, 6, 2});
  target.append(std::vector<int32_t>{1, 4, 7, 9});
  changed.append(std::vector<int32_t>{1, 4, 8, 3});
  Transformer<double>::Saved a, b;
  model.forward(source, target, context, a);
  model.forward(source, changed, context, b);
  const size_t bytes = to_size(config.d_model) * sizeof(double);
  for (int64_t t = 0; t < 2; t++) EXPECT_EQ(std::memcmp(a.h.row(t), b.h.row(t), bytes), 0) << t;
  EXPECT_NE(std::memcmp(a.h.row(2), b.h.row(2), bytes), 0);
}

TEST(Transformer, ZeroStartIgnoresTheFirstToken) {
  ModelConfig config = small_config();
  config.zero_start = true;
  Transformer<double> model(config);
  randomize(model.parameters(), 1);
  SpoiledArena arena;
  Context context{arena};
  const auto hidden = [&](std::vector<int32_t> target_ids) {
    Packed source, target;
    source.append(std::vector<int32_t>{5, 6, 2});
    target.append(target_ids);
    Transformer<double>::Saved saved;
    model.forward(source, target, context, saved);
    return std::vector<double>(saved.h.row(1), saved.h.row(1) + config.d_model);
  };
  EXPECT_EQ(hidden({1, 4}), hidden({9, 4}));
  EXPECT_NE(hidden({1, 4}), hidden({1, 5}));
}

TEST(Transformer, CountParametersAgreesWithTheModel) {
  for (const Case& c : cases())
    EXPECT_EQ(count_parameters(c.config, c.items), Transformer<float>(c.config, c.items).parameters().size());
  const ModelConfig config = cases()[6].config;
  EXPECT_EQ(count_parameters(config, {.features = 5}), Transformer<float>(config, {.features = 5}).parameters().size());
}

TEST(Transformer, RejectsABatchThatDoesNotFitTheModel) {
  const ModelConfig config = small_config();
  const Transformer<float> model(config);
  SpoiledArena arena;
  Context context{arena};
  const auto error = [&](auto&& change) {
    Batch batch = sample_batch(config);
    change(batch);
    return error_of([&] { model.loss(batch, kSmoothing, context); });
  };
  EXPECT_EQ(error([](Batch& b) { b.source.ids[1] = 13; }), "batch: source id must be from 0 to 12 (is 13)");
  EXPECT_EQ(error([](Batch& b) { b.target.ids[1] = -1; }), "batch: target id must be from 0 to 12 (is -1)");
  EXPECT_EQ(error([](Batch& b) { b.labels[1] = 13; }), "batch: label must be from 0 to 12 (is 13)");
  EXPECT_EQ(error([](Batch& b) { b.labels.pop_back(); }),
            "batch: expected 7 labels, one for each target token, found 6");
  EXPECT_EQ(error([](Batch& b) { b.source.append(std::vector<int32_t>(1, 3)); }),
            "batch: expected 3 source sequences for 3 target sequences, found 4");
  EXPECT_EQ(error([](Batch& b) { b.source.append(std::vector<int32_t>(21, 3)); }),
            "batch: a source sequence is longer than max_length (20)");
  EXPECT_EQ(error([](Batch& b) {
              b.target.append(std::vector<int32_t>(21, 3));
              b.labels.resize(b.target.ids.size());
            }),
            "batch: a target sequence is longer than max_length (20)");
  EXPECT_EQ(error([](Batch& b) { b.target.gaps.resize(7); }), "batch: expected 0 gaps for 7 target tokens, found 7");
}

TEST(Transformer, RejectsGapsThatDoNotFitTheModel) {
  ModelConfig config = small_config();
  config.encoder_layers = config.source_vocab = 0;
  config.shared_embeddings = false;
  const ItemInputs items = {.gap_buckets = 4};
  const Transformer<float> model(config, items);
  SpoiledArena arena;
  Context context{arena};
  const auto error = [&](auto&& change) {
    Batch batch = sample_batch(config, items);
    change(batch.target.gaps);
    const std::string message = error_of([&] { model.loss(batch, kSmoothing, context); });
    EXPECT_EQ(error_of([&] { model.last_hidden(batch.target, context); }), message);
    return message;
  };
  EXPECT_EQ(error([](auto& gaps) { gaps.pop_back(); }), "batch: expected 7 gaps for 7 target tokens, found 6");
  EXPECT_EQ(error([](auto& gaps) { gaps[2] = 4; }), "batch: gap must be from 0 to 3 (is 4)");
  EXPECT_EQ(error([](auto& gaps) { gaps[0] = -1; }), "batch: gap must be from 0 to 3 (is -1)");
  EXPECT_EQ(error_of([&] { model.step({}, {}, context); }),
            "model: gap_buckets must be 0 to decode token by token (is 4)");
}

}  // namespace
}  // namespace qkv
