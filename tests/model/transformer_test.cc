// The passes of a model: tokens that are decoded one by one, positions, what a hidden state depends on, and arguments
// that are refused.
#include "model/transformer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/to_size.h"
#include "tests/model/model_cases.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::Case;
using testing::cases;
using testing::error_of;
using testing::kSmoothing;
using testing::randomize;
using testing::sample_batch;
using testing::small_config;
using testing::SpoiledArena;

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
      const PositionTables<double> tables(config);
      const Layer<double> layer(list, "l", 0, config, {Causal::top_left, false}, sites, &tables);
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
