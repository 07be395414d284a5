// Attributions of encoder-decoder models against finite differences, and the quadrature of integrated gradients.
#include "analysis/attribution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/to_size.h"
#include "tests/support/models.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

std::vector<std::string> names(std::span<const int32_t> ids, bool) { return std::vector<std::string>(ids.size(), "x"); }

// Scales the word in the embedding of one token, in double. With zero_start the first target token has none.
class ScaledWord final : public Probe {
 public:
  ScaledWord(const Transformer<double>& model, TokenSide side, int64_t token, double factor, const Packed& packed)
      : model_(model), side_(side), token_(token), factor_(factor), packed_(packed) {}

  void output(std::string_view op, Pass, Matrix<double> m, int64_t) override {
    if (op != "lookup" || side() != side_) return;
    const ModelConfig& config = model_.config();
    if (side_ == TokenSide::target && token_ == 0 && config.zero_start) return;
    const double scale = config.scale_embeddings ? std::sqrt(static_cast<double>(config.d_model)) : 1;
    const auto& table = side_ == TokenSide::source ? model_.source_table() : model_.item_table();
    const double* word = table.matrix().row(packed_.ids[to_size(token_)]);
    for (int64_t e = 0; e < m.cols; e++) m.row(token_)[e] += (factor_ - 1) * scale * word[e];
  }
  using Probe::output;

 private:
  const Transformer<double>& model_;
  const TokenSide side_;
  const int64_t token_;
  const double factor_;
  const Packed& packed_;
};

// log p of a token after the first row + 1 tokens of the target.
double log_p(const Transformer<double>& model, const AttributedText& text, size_t row, int32_t token, Probe* probe) {
  Arena arena;
  Context c{arena};
  c.probe = probe;
  Packed target;
  target.append(std::span(text.target.ids).first(row + 1));
  Transformer<double>::Saved saved;
  model.forward(text.source, target, c, saved);
  const int64_t last = saved.h.rows - 1;
  return -model.output().loss(saved.h.row_range(last, last + 1), {&token, 1}, 0, c).nll;
}

struct EmbeddingCase {
  std::string name;
  NormPosition position = NormPosition::post;
  void (*change)(ModelConfig&) = [](ModelConfig&) {};
};

class Attributions : public ::testing::TestWithParam<EmbeddingCase> {
 protected:
  Attributions() : model(config()), exact(config()) {
    testing::randomize(model.parameters(), 4);
    testing::randomize(exact.parameters(), 4);
    text.source.append(std::vector<int32_t>{5, 9, 4, 2});
    text.target.append(std::vector<int32_t>{1, 7, 3});
    text.predicted = {7, 3, 2};
  }
  static ModelConfig config() {
    ModelConfig c = testing::small_config();
    c.activation = Activation::gelu;  // whose gradient has no jumps, so that the quadrature converges fast
    c.norm.position = GetParam().position;
    c.norm.first = true;
    c.norm.final = GetParam().position != NormPosition::post;
    GetParam().change(c);
    return c;
  }
  AttentionMap map(AttentionMethod method, int64_t steps) {
    return attribution_map(model, text, {method, steps}, arena, names);
  }

  Transformer<float> model;
  Transformer<double> exact;
  AttributedText text;
  testing::SpoiledArena arena;
};

// The derivative of log p by the factor of a token's word is the gradient times the input.
TEST_P(Attributions, GradientTimesInputEqualsFiniteDifferences) {
  const AttentionMap found = map(AttentionMethod::gradient, 1);
  ASSERT_EQ(found.kinds.size(), 2u);
  constexpr double h = 1e-4;
  for (const auto& [kind, side, packed] : {std::tuple{&found.kinds[0], TokenSide::target, &text.target},
                                           {&found.kinds[1], TokenSide::source, &text.source}})
    for (size_t r = 0; r < 3; r++)
      for (size_t j = 0; j < kind->columns.size(); j++) {
        double difference = 0;
        if (side == TokenSide::source || j <= r)
          for (const double sign : {1.0, -1.0}) {
            ScaledWord probe(exact, side, static_cast<int64_t>(j), 1 + sign * h, *packed);
            difference += sign * log_p(exact, text, r, text.predicted[r], &probe) / (2 * h);
          }
        EXPECT_NEAR(static_cast<double>(kind->layers[0][0].values[r * kind->columns.size() + j]), difference, 2e-5)
            << kind->name << " " << r << " " << j;
      }
}

TEST_P(Attributions, IntegratedGradientsAddUpToTheChangeOfLogP) {
  const AttentionMap found = map(AttentionMethod::integrated, 1000);
  for (size_t r = 0; r < 3; r++) {
    const TokenAttribution& token = found.tokens[r];
    EXPECT_NEAR(token.log_probability, log_p(exact, text, r, text.predicted[r], nullptr), 1e-5);
    EXPECT_NEAR(token.sum, token.log_probability - token.baseline, 1e-4) << r;
    double shares = 0;
    for (const AttentionKind& kind : found.kinds)
      for (size_t j = 0; j < kind.columns.size(); j++)
        shares += static_cast<double>(kind.layers[0][0].weights[r * kind.columns.size() + j]);
    EXPECT_NEAR(shares, 1, 1e-6);
  }
}

TEST_P(Attributions, AFirstTokenWithoutEmbeddingHasNoAttribution) {
  const AttentionMap found = map(AttentionMethod::gradient, 1);
  const std::vector<float>& values = found.kinds[0].layers[0][0].values;
  for (size_t r = 0; r < 3; r++) EXPECT_EQ(values[r * 3] == 0, config().zero_start) << r;
}

INSTANTIATE_TEST_SUITE_P(All, Attributions,
                         ::testing::Values(EmbeddingCase{"Post"}, EmbeddingCase{"Pre", NormPosition::pre},
                                           EmbeddingCase{"ZeroStart", NormPosition::post,
                                                         [](ModelConfig& c) { c.zero_start = true; }},
                                           EmbeddingCase{"EmbeddingNorm", NormPosition::pre,
                                                         [](ModelConfig& c) { c.embedding_norm = true; }},
                                           EmbeddingCase{"EmbeddingWidth", NormPosition::post,
                                                         [](ModelConfig& c) {
                                                           c.embedding_width = 8;
                                                           c.tied_output = false;
                                                         }}),
                         [](const auto& param) { return param.param.name; });

// Exact for polynomials of degree 2n − 1.
TEST(GaussLegendre, IntegratesPolynomialsExactly) {
  for (const int64_t points : {1, 2, 5, 50}) {
    const Quadrature q = gauss_legendre(points);
    ASSERT_EQ(std::ssize(q.nodes), points);
    for (int64_t degree = 0; degree <= 2 * points - 1; degree++) {
      double sum = 0;
      for (size_t i = 0; i < q.nodes.size(); i++)
        sum += q.weights[i] * std::pow(q.nodes[i], static_cast<double>(degree));
      EXPECT_NEAR(sum, 1 / (static_cast<double>(degree) + 1), 1e-13) << points << " " << degree;
    }
  }
}

}  // namespace
}  // namespace qkv
