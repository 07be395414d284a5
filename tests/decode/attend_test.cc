// Attention maps.
#include "decode/attend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/fields.h"
#include "core/to_size.h"
#include "qkv/generator.h"
#include "qkv/translator.h"
#include "tests/decode/language_models.h"
#include "tests/decode/random_run.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

class Attend : public ::testing::Test {
 protected:
  Attend() : model(testing::small_config()) {
    testing::randomize(model.parameters(), 1);
    const auto pieces = [](std::span<const int32_t> ids, bool of_source) {
      std::vector<std::string> names;
      for (const int32_t id : ids) names.push_back((of_source ? "s" : "t") + std::to_string(id));
      return names;
    };
    map = attention_map(model, request, arena, pieces);
  }

  // Row n of the encoder's input: √d E[id] + P[n], P[n, 2i] = sin(n / 10000^(2i/d)), P[n, 2i + 1] = cos(…).
  std::vector<double> embedded(int32_t id, size_t n) const {
    constexpr size_t d = 6;
    const float* row = parameter("embedding.weight") + to_size(id) * d;
    std::vector<double> x(d);
    for (size_t e = 0; e < d; e++) {
      const double angle = static_cast<double>(n) / std::pow(10000.0, static_cast<double>(e - e % 2) / d);
      x[e] = std::sqrt(6.0) * static_cast<double>(row[e]) + (e % 2 ? std::cos(angle) : std::sin(angle));
    }
    return x;
  }
  // Returns outputs [begin, end) of W x + b.
  std::vector<double> linear(const std::string& name, const std::vector<double>& x, size_t begin, size_t end) const {
    const float *W = parameter(name + ".weight"), *b = parameter(name + ".bias");
    std::vector<double> y;
    for (size_t o = begin; o < end; o++) {
      y.push_back(static_cast<double>(b[o]));
      for (size_t e = 0; e < x.size(); e++) y.back() += static_cast<double>(W[o * x.size() + e]) * x[e];
    }
    return y;
  }
  const float* parameter(const std::string& name) const { return testing::values_of(model.parameters(), name); }
  // Returns softmax(q_i · k_j / √d_k) of one head in the first layer of a stack. Row i attends to `visible` keys.
  std::vector<double> expected_row(const std::string& attention, const std::vector<int32_t>& ids, size_t head, size_t i,
                                   size_t visible) const {
    constexpr size_t width = 3;
    const auto head_of = [&](const char* part, size_t n) {
      return linear(attention + part, embedded(ids[n], n), head * width, (head + 1) * width);
    };
    const std::vector<double> q = head_of(".q", i);
    std::vector<double> row(ids.size());
    double sum = 0;
    for (size_t j = 0; j < visible; j++) {
      const std::vector<double> k = head_of(".k", j);
      double dot = 0;
      for (size_t e = 0; e < width; e++) dot += q[e] * k[e];
      sum += row[j] = std::exp(dot / std::sqrt(static_cast<double>(width)));
    }
    for (double& w : row) w /= sum;
    return row;
  }

  Transformer<float> model;
  AttendRequest request{{5, 9, 4, 2}, {7, 3}};
  testing::SpoiledArena arena;
  AttentionMap map;
};

TEST_F(Attend, ReturnsEveryLayerAndHeadOfThreeKinds) {
  ASSERT_EQ(map.kinds.size(), 3u);
  const std::vector<std::string> source = {"s5", "s9", "s4", "s2"}, read = {"t1", "t7", "t3"},
                                 predicted = {"t7", "t3", "t2"};
  EXPECT_EQ(map.kinds[0].name, "encoder");
  EXPECT_EQ(map.kinds[0].rows, source);
  EXPECT_EQ(map.kinds[0].columns, source);
  EXPECT_EQ(map.kinds[1].name, "decoder");
  EXPECT_EQ(map.kinds[1].rows, read);
  EXPECT_EQ(map.kinds[1].columns, read);
  EXPECT_EQ(map.kinds[2].name, "cross");
  EXPECT_EQ(map.kinds[2].rows, predicted);
  EXPECT_EQ(map.kinds[2].columns, source);
  for (const AttentionKind& kind : map.kinds) {
    EXPECT_EQ(kind.causal, kind.name == "decoder");
    ASSERT_EQ(kind.layers.size(), 2u);
    for (const auto& layer : kind.layers) EXPECT_EQ(layer.size(), 2u);
  }
}

TEST_F(Attend, RowsSumToOneAndTheDecoderIsCausal) {
  for (const AttentionKind& kind : map.kinds)
    for (const auto& layer : kind.layers)
      for (const AttentionHead& head : layer) {
        const size_t S = kind.columns.size();
        ASSERT_EQ(head.weights.size(), kind.rows.size() * S);
        for (size_t i = 0; i < kind.rows.size(); i++) {
          double sum = 0;
          for (size_t j = 0; j < S; j++) {
            const float w = head.weights[i * S + j];
            EXPECT_EQ(w > 0, !kind.causal || j <= i) << kind.name;
            sum += static_cast<double>(w);
          }
          EXPECT_NEAR(sum, 1, 16 * std::numeric_limits<float>::epsilon());
        }
      }
}

TEST_F(Attend, WeightsAreTheSoftmaxOfTheScores) {
  const std::vector<int32_t> read = {1, 7, 3};
  for (size_t head = 0; head < 2; head++) {
    for (size_t i = 0; i < 4; i++) {
      const auto wanted = expected_row("encoder.layers.0.self_attention", request.source_ids, head, i, 4);
      for (size_t j = 0; j < 4; j++)
        EXPECT_NEAR(map.kinds[0].layers[0][head].weights[i * 4 + j], wanted[j], 1e-5) << i << ", " << j;
    }
    for (size_t i = 0; i < 3; i++) {
      const auto wanted = expected_row("decoder.layers.0.self_attention", read, head, i, i + 1);
      for (size_t j = 0; j < 3; j++)
        EXPECT_NEAR(map.kinds[1].layers[0][head].weights[i * 3 + j], wanted[j], 1e-5) << i << ", " << j;
    }
  }
}

// Compares head_h = Σ_j a_ij v_j with the output of the kernel, for every kind of attention that a model may have.
TEST(AttendOfADecoder, WeightsMatchTheKernel) {
  for (const ModelConfig& config : testing::language_configs(13, 20)) {
    Transformer<float> model(config);
    testing::randomize(model.parameters(), 2);
    Arena arena;
    const AttendRequest request{{}, {7, 3, 3, 9, 11, 4, 5}};
    const AttentionMap map = attention_map(model, request, arena, [](std::span<const int32_t> ids, bool) {
      return std::vector<std::string>(ids.size(), "x");
    });
    ASSERT_EQ(map.kinds.size(), 1u);
    EXPECT_EQ(map.kinds.front().name, "decoder");

    Packed text;
    text.append(std::vector<int32_t>{1, 7, 3, 3, 9, 11, 4, 5});
    Context context{arena};
    Transformer<float>::Saved saved;
    model.forward({}, text, context, saved);
    const int64_t N = 8, H = config.attention.heads,
                  K = config.attention.key_value_heads ? config.attention.key_value_heads : H;
    for (size_t layer = 0; layer < 2; layer++) {
      const bool local = config.layer_kind(static_cast<int64_t>(layer)) == 'l';
      const int64_t window = local ? config.attention.window : 0;
      for (int64_t h = 0; h < H; h++) {
        const auto& attention = saved.decoder.layers[layer].self_attention;
        const std::vector<float>& a = map.kinds.front().layers[layer][to_size(h)].weights;
        for (int64_t i = 0; i < N; i++) {
          const auto weight = [&](int64_t j) { return static_cast<double>(a[to_size(i * N + j)]); };
          double sum = 0;
          for (int64_t j = 0; j < N; j++) {
            EXPECT_EQ(weight(j) > 0, j <= i && (window == 0 || j > i - window)) << i << ", " << j;
            sum += weight(j);
          }
          EXPECT_NEAR(sum, 1, N * 0x1p-22);
          for (int64_t c = 0; c < config.attention.value_width; c++) {
            double mix = 0, size = 0;
            for (int64_t j = 0; j < N; j++) {
              const double v = attention.v(j, h * K / H * config.attention.value_width + c);
              mix += weight(j) * v;
              size += weight(j) * std::abs(v);
            }
            // The bound covers a few roundings of each product, the exponentials and their sum.
            EXPECT_NEAR(attention.heads(i, h * config.attention.value_width + c), mix, size * (N + 8) * 0x1p-23);
          }
        }
      }
    }
  }
}

TEST_F(Attend, AnEncoderAloneHasTheSameWeights) {
  const AttentionMap alone = encoder_attention_map(model, request.source_ids, arena, map.kinds[0].rows);
  ASSERT_EQ(alone.kinds.size(), 1u);
  EXPECT_EQ(alone.kinds[0].name, "encoder");
  EXPECT_EQ(alone.kinds[0].columns, map.kinds[0].columns);
  ASSERT_EQ(alone.kinds[0].layers.size(), 2u);
  for (size_t layer = 0; layer < 2; layer++)
    for (size_t head = 0; head < 2; head++)
      EXPECT_EQ(alone.kinds[0].layers[layer][head].weights, map.kinds[0].layers[layer][head].weights);
}

TEST_F(Attend, ReleasesTheArenaMemory) { EXPECT_EQ(arena.used(), 0u); }

TEST(AttendOptions, MustBeThoseOfTheMethod) {
  const testing::TempDir directory;
  const Translator translator(testing::make_random_run(directory / "translator"));
  const Generator generator(testing::make_language_run(directory / "lm"));
  const auto of_translator = [&](const AttributionOptions& options) {
    return testing::error_if_any([&] { translator.attend("the dog", "the cat", {}, options); });
  };
  const auto of_generator = [&](const AttributionOptions& options) {
    return testing::error_if_any([&] { generator.attend("ab", 0, options); });
  };
  for (const AttentionMethod method : {AttentionMethod::weights, AttentionMethod::rollout, AttentionMethod::gradient}) {
    const std::string error =
        fmt::format("steps must not be set if method is {}; only integrated has steps (is 7)", name_of(method));
    EXPECT_EQ(of_translator({method, 7}), error);
    EXPECT_EQ(of_generator({method, 7}), error);
  }
  for (const AttentionMethod method : {AttentionMethod::weights, AttentionMethod::rollout}) {
    const std::string error =
        fmt::format("baseline must not be set if method is {}; only gradient and integrated have a baseline (is \"a\")",
                    name_of(method));
    EXPECT_EQ(of_translator({method, 50, "a"}), error);
    EXPECT_EQ(of_generator({method, 50, "a"}), error);
  }
  EXPECT_EQ(of_translator({AttentionMethod::integrated, 7, "a"}), "");
  EXPECT_EQ(of_generator({AttentionMethod::gradient, 50, "a"}), "");
  EXPECT_EQ(of_translator({AttentionMethod::gradient, 50, " "}), "baseline has no tokens");
}

}  // namespace
}  // namespace qkv
