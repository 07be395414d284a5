// Ablation and importance: removing a part equals a model whose weights lack it, and gradients equal differences.
#include "analysis/heads/head_ablation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/heads/head_importance.h"
#include "analysis/heads/translation_ablation.h"
#include "tests/analysis/heads/head_cases.h"
#include "tests/support/errors.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::head_cases;
using testing::one_batch;
using testing::random_head_texts;

// Changes columns of W_O for the time of its life, and adds to its bias what the mean of the heads would give.
class WithoutColumns {
 public:
  WithoutColumns(HeadTexts& texts, const RemovedPart& part) : texts_(texts), kept_(values()) {
    const std::string name = parameters_of(part.place) + ".output";
    const ModelConfig& config = texts.config();
    const int64_t columns = config.attention.heads * config.attention.value_width;
    float* W = testing::values_of(texts.model->parameters(), name + ".weight");
    float* b = testing::values_of(texts.model->parameters(), name + ".bias");
    for (int64_t o = 0; o < config.d_model; o++)
      for (int64_t e = part.begin; e < part.end; e++) {
        float& w = W[o * columns + e];
        if (!part.values.empty()) b[o] += w * part.values[to_size(e - part.begin)];
        w = 0;
      }
  }
  ~WithoutColumns() { std::ranges::copy(kept_, texts_.model->parameters().values().begin()); }

 private:
  std::vector<float> values() const {
    const auto all = texts_.model->parameters().values();
    return {all.begin(), all.end()};
  }
  HeadTexts& texts_;
  const std::vector<float> kept_;
};

std::vector<TextLoss> losses_of(const HeadTexts& texts, Arena& arena) {
  return ablate(texts, one_batch(texts), arena, {}).whole;
}

// float32 passes whose sums have another order: 2⁻²⁴ for each of some hundred roundings of losses of about ten nats.
constexpr double kLossTolerance = 2e-4;

TEST(HeadAblation, AHeadReplacedByZerosOrItsMeanEqualsAModelWithOtherWeights) {
  for (const auto& [config, kind] : head_cases())
    for (const bool by_mean : {false, true}) {
      HeadTexts texts = random_head_texts(config, kind, 4);
      testing::SpoiledArena arena;
      std::vector<RemovedPart> parts = parts_of(config, Ablation::heads);
      if (by_mean) set_means(texts, one_batch(texts), arena, parts);
      const AblationLosses found = ablate(texts, one_batch(texts), arena, parts);
      double largest = 0;
      for (size_t p = 0; p < parts.size(); p++) {
        const WithoutColumns without(texts, parts[p]);
        const std::vector<TextLoss> wanted = losses_of(texts, arena);
        for (size_t t = 0; t < wanted.size(); t++) {
          EXPECT_EQ(found.without[p][t].labels, wanted[t].labels);
          EXPECT_NEAR(found.without[p][t].nll, wanted[t].nll, kLossTolerance) << name_of(parts[p].place);
          largest = std::max(largest, std::abs(wanted[t].nll - found.whole[t].nll));
        }
      }
      EXPECT_GT(largest, 100 * kLossTolerance);  // heads matter
    }
}

TEST(HeadAblation, LossesAreThoseOfTheModel) {
  for (const auto& [config, kind] : head_cases()) {
    const HeadTexts texts = random_head_texts(config, kind, 4);
    testing::SpoiledArena arena;
    double sum = 0;
    for (const TextLoss& loss : losses_of(texts, arena)) sum += loss.nll;
    const std::vector<std::vector<size_t>> batches = one_batch(texts);
    Context c{arena};
    const Loss loss = texts.model->loss(batch_of(texts, batches.front(), config.is_encoder_only()), 0, c);
    EXPECT_NEAR(sum, loss.nll, kLossTolerance);
  }
}

TEST(HeadAblation, ASublayerReplacedByZerosAddsNothing) {
  for (const auto& [config, kind] : head_cases()) {
    HeadTexts texts = random_head_texts(config, kind, 3);
    testing::SpoiledArena arena;
    const std::vector<RemovedPart> parts = parts_of(config, Ablation::sublayers);
    EXPECT_EQ(std::ssize(parts), 2 * config.encoder_layers + (config.has_encoder() ? 3 : 2) * config.decoder_layers);
    const AblationLosses found = ablate(texts, one_batch(texts), arena, parts);
    const bool after = config.norm.position == NormPosition::branch || config.norm.position == NormPosition::sandwich;
    for (size_t p = 0; p < parts.size(); p++) {
      // The last linear layer of the sublayer gives zeros, or the norm after it does.
      const std::vector<float> kept(texts.model->parameters().values().begin(),
                                    texts.model->parameters().values().end());
      const std::string name = parameters_of(parts[p].place);
      const std::string last = after                                               ? name + "_branch_norm."
                               : parts[p].place.kind == SublayerKind::feed_forward ? name + ".second."
                                                                                   : name + ".output.";
      int64_t zeroed = 0;
      for (const Parameter<float>& parameter : texts.model->parameters().all())
        if (parameter.name.starts_with(last)) std::fill_n(parameter.value, parameter.size(), 0.0f), zeroed++;
      ASSERT_GT(zeroed, 0) << last;
      const std::vector<TextLoss> wanted = losses_of(texts, arena);
      for (size_t t = 0; t < wanted.size(); t++) EXPECT_NEAR(found.without[p][t].nll, wanted[t].nll, kLossTolerance);
      std::ranges::copy(kept, texts.model->parameters().values().begin());
    }
  }
}

TEST(HeadAblation, RemovingAPartFromTheWeightsEqualsRemovingItsOutput) {
  for (const auto& [config, kind] : head_cases())
    for (const Ablation ablation : {Ablation::heads, Ablation::attention, Ablation::sublayers})
      for (const bool by_mean : {false, true}) {
        const bool after =
            config.norm.position == NormPosition::branch || config.norm.position == NormPosition::sandwich;
        if (by_mean && ablation == Ablation::sublayers && after && config.norm.kind != NormKind::layer) continue;
        HeadTexts texts = random_head_texts(config, kind, 3);
        testing::SpoiledArena arena;
        std::vector<RemovedPart> parts = parts_of(config, ablation);
        if (by_mean) set_means(texts, one_batch(texts), arena, parts);
        const AblationLosses found = ablate(texts, one_batch(texts), arena, parts);
        const std::vector<float> kept(texts.model->parameters().values().begin(),
                                      texts.model->parameters().values().end());
        for (size_t p = 0; p < parts.size(); p++) {
          remove_part(*texts.model, parts[p]);
          const std::vector<TextLoss> wanted = losses_of(texts, arena);
          for (size_t t = 0; t < wanted.size(); t++)
            EXPECT_NEAR(found.without[p][t].nll, wanted[t].nll, kLossTolerance);
          std::ranges::copy(kept, texts.model->parameters().values().begin());
        }
      }
}

TEST(HeadAblation, ModelsWhoseWeightsCannotBeChangedAreRefused) {
  ModelConfig config = testing::small_config();
  const auto error = [&](Replacement replace_by) {
    return testing::error_if_any([&] {
      check_removable("runs/a", Transformer<float>(config), parts_of(config, Ablation::sublayers), replace_by);
    });
  };
  EXPECT_EQ(error(Replacement::mean), "");
  config.norm.position = NormPosition::branch;
  config.norm.final = true;
  config.norm.kind = NormKind::rms;  // without a bias
  EXPECT_EQ(error(Replacement::zero), "");
  EXPECT_EQ(error(Replacement::mean),
            "replace_by must be zero for bleu: encoder.layers.0.self_attention_branch_norm of runs/a has no bias (is "
            "mean)");
  config = testing::small_config();
  config.shared_layers = true;
  EXPECT_EQ(error(Replacement::zero),
            "bleu must be false: the layers of runs/a share their weights (shared_layers is true)");
}

TEST(HeadAblation, TheMeanOfAnAttentionIsTheMeanOfItsHeads) {
  HeadTexts texts = random_head_texts(testing::small_config(), RunKind::translator, 3);
  testing::SpoiledArena arena;
  std::vector<RemovedPart> heads = parts_of(texts.config(), Ablation::heads);
  std::vector<RemovedPart> attention = parts_of(texts.config(), Ablation::attention);
  set_means(texts, one_batch(texts), arena, heads);
  const std::vector<std::vector<size_t>> two = {{0}, {1, 2}};
  set_means(texts, two, arena, attention);
  for (size_t p = 0; p < attention.size(); p++)
    for (size_t e = 0; e < attention[p].values.size(); e++)
      EXPECT_NEAR(attention[p].values[e], heads[2 * p + e / 4].values[e % 4], 1e-6);
}

// Multiplies the output of a head at one token.
class ScalingProbe : public SublayerProbe {
 public:
  ScalingProbe(const SublayerPlace& place, int64_t token, int64_t begin, int64_t end, double factor)
      : place_(place), token_(token), begin_(begin), end_(end), factor_(factor) {}
  using Probe::output;
  void output(std::string_view op, Pass pass, Matrix<double> m, int64_t) override {
    SublayerPlace place;
    if (op != "attention" || pass != Pass::forward || !find(place) || place != place_) return;
    for (int64_t e = begin_; e < end_; e++) m(token_, e) *= factor_;
  }

 private:
  SublayerPlace place_;
  int64_t token_, begin_, end_;
  double factor_;
};

TEST(HeadImportance, DerivativesEqualFiniteDifferencesOfAMask) {
  constexpr double kStep = 1e-5;
  for (const auto& [config, kind] : head_cases()) {
    const HeadTexts texts = random_head_texts(config, kind, 2);
    const std::vector<std::vector<size_t>> batches = one_batch(texts);
    const Batch batch = batch_of(texts, batches.front(), config.is_encoder_only());
    Transformer<double> model(config);
    testing::randomize(model.parameters(), 1);
    model.parameters().allocate_gradients();
    Arena arena;
    const int64_t H = config.attention.heads, V = config.attention.value_width;
    ImportanceProbe probe(H);
    Context c{.arena = arena, .probe = &probe};
    model.loss_and_gradient(batch, Objective(), c);
    for (const HeadPlace& place : all_heads(config)) {
      const SublayerPlace sublayer = sublayer_of(place);
      const std::vector<double>& derivatives = probe.derivatives(sublayer);
      const int64_t tokens = std::ssize(derivatives) / H;
      for (int64_t n = 0; n < tokens; n++) {
        const auto loss_with = [&](double factor) {
          ScalingProbe scaling(sublayer, n, place.head * V, (place.head + 1) * V, factor);
          Context scaled{.arena = arena, .probe = &scaling};
          return model.loss(batch, 0, scaled).nll;
        };
        const double difference = (loss_with(1 + kStep) - loss_with(1 - kStep)) / (2 * kStep);
        // Central differences: an error of h² times the third derivative, and rounding 1e-15 / h of a loss below 100.
        EXPECT_NEAR(derivatives[to_size(n * H + place.head)], difference, 1e-7);
      }
    }
  }
}

TEST(HeadImportance, IsTheMeanMagnitudeOfTheDerivatives) {
  for (const auto& [config, kind] : head_cases()) {
    HeadTexts texts = random_head_texts(config, kind, 3);
    const Batch batch = batch_of(texts, one_batch(texts).front(), config.is_encoder_only());
    Transformer<double> model(config);
    testing::randomize(model.parameters(), 1);
    model.parameters().allocate_gradients();
    Arena arena;
    const int64_t H = config.attention.heads;
    ImportanceProbe probe(H);
    Context c{.arena = arena, .probe = &probe};
    model.loss_and_gradient(batch, Objective(), c);
    const std::vector<std::vector<size_t>> two = {{2, 0}, {1}};
    const std::vector<double> found = head_importance(texts, two, arena);
    const std::vector<HeadPlace> places = all_heads(config);
    for (size_t p = 0; p < places.size(); p++) {
      const std::vector<double>& derivatives = probe.derivatives(sublayer_of(places[p]));
      double sum = 0;
      for (size_t k = to_size(places[p].head); k < derivatives.size(); k += to_size(H)) sum += std::abs(derivatives[k]);
      const double wanted = sum * static_cast<double>(H) / static_cast<double>(derivatives.size());
      EXPECT_NEAR(found[p], wanted, kLossTolerance * (1 + wanted));
    }
  }
}

}  // namespace
}  // namespace qkv
