// The parts that experiments are made of: the model without residuals and norms, the recurrent network, the source of
// text and the n-gram model, each against an independent computation.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "core/to_size.h"
#include "program/experiments/bare_transformer.h"
#include "program/experiments/gated_recurrent.h"
#include "program/experiments/ngram_model.h"
#include "program/experiments/recall.h"
#include "program/experiments/small_training.h"
#include "program/experiments/symbol_source.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;

ModelConfig tiny_language_model() { return small_language_model(10, 3, 8, 2, 6); }

Batch two_texts() {
  Batch batch;
  append_text(batch, std::vector<int32_t>{1, 5, 2, 9, 4});
  append_text(batch, std::vector<int32_t>{7, 7, 3});
  return batch;
}

// Compares the gradients of a model's parameters with finite differences of step 1e-5, whose error is about the square
// of the step, and that of rounding about 1e-16 · loss / step.
void expect_gradients_of(ParameterList<double>& list, const std::function<double()>& loss_and_gradient) {
  constexpr double h = 1e-5;
  std::ranges::fill(list.gradients(), 0.0);
  loss_and_gradient();
  const std::vector<double> gradients(list.gradients().begin(), list.gradients().end());
  double largest = 0;
  for (const double g : gradients) largest = std::max(largest, std::abs(g));
  for (size_t i = 0; i < gradients.size(); i += 3) {
    double& w = list.values()[i];
    const double kept = w;
    w = kept + h;
    const double above = loss_and_gradient();
    w = kept - h;
    const double below = loss_and_gradient();
    w = kept;
    EXPECT_NEAR(gradients[i], (above - below) / (2 * h), 1e-7 * std::max(1.0, largest)) << "parameter " << i;
  }
}

TEST(BareTransformer, GradientsMatchFiniteDifferencesWithAndWithoutParts) {
  const Batch batch = two_texts();
  for (const bool residual : {true, false})
    for (const bool norm : {true, false}) {
      SCOPED_TRACE(::testing::Message() << "residual " << residual << ", norm " << norm);
      BareTransformer<double> model(tiny_language_model(), {residual, norm, norm});
      model.parameters().allocate_gradients();
      testing::randomize(model.parameters(), 1);
      Arena arena;
      Context context{arena};
      expect_gradients_of(model.parameters(), [&] { return model.loss_and_gradient(batch, {}, context).loss; });
    }
}

TEST(BareTransformer, WithAllPartsIsTheModelWithPreNorm) {
  const Batch batch = two_texts();
  BareTransformer<double> bare(tiny_language_model(), {});
  Transformer<double> model(tiny_language_model());
  ASSERT_EQ(bare.parameters().size(), model.parameters().size());
  for (size_t i = 0; i < model.parameters().all().size(); i++)
    EXPECT_EQ(bare.parameters().all()[i].name, model.parameters().all()[i].name);
  Arena arena;
  Context context{arena};
  for (ParameterList<double>* list : {&bare.parameters(), &model.parameters()}) {
    list->allocate_gradients();
    testing::randomize(*list, 1);
  }
  const double loss = model.loss_and_gradient(batch, Objective{}, context).loss;
  EXPECT_EQ(bare.loss_and_gradient(batch, {}, context).loss, loss);
  for (size_t i = 0; i < model.parameters().gradients().size(); i++)
    EXPECT_NEAR(bare.parameters().gradients()[i], model.parameters().gradients()[i], 1e-13 * loss);
}

TEST(BareTransformer, TheVarietyOfEqualTokensIsZero) {
  ModelConfig config = tiny_language_model();
  config.positions = Positions::none;
  BareTransformer<double> model(config, {});
  testing::randomize(model.parameters(), 1);
  Batch equal, different;
  append_text(equal, std::vector<int32_t>{4, 4, 4, 4});
  append_text(different, std::vector<int32_t>{4, 1, 8, 2});
  EXPECT_NEAR(model.variety(equal), 0, 1e-14);
  EXPECT_GT(model.variety(different), 0.01);
}

// Two sequences of four tokens, width 3 to 5. The loss weights every state.
TEST(GatedRecurrent, GradientsMatchFiniteDifferences) {
  ParameterList<double> list;
  const GatedRecurrent<double> layer(list, "layer", 3, 5);
  list.allocate();
  list.allocate_gradients();
  testing::randomize(list, 1);
  Random random(2, Stream::test);
  std::vector<double> x(24), weights(40);
  for (double& value : x) value = random.normal();
  for (double& value : weights) value = random.normal();
  std::vector<double> dx(24);
  Arena arena;
  const auto loss_and_gradient = [&] {
    const Arena::Scope scope(arena);
    Context context{arena};
    GatedRecurrent<double>::Saved saved;
    const Matrix<double> states = layer.forward({x.data(), 8, 3}, 2, context, saved);
    layer.backward({weights.data(), 8, 5}, {dx.data(), 8, 3}, context, saved);
    return std::inner_product(weights.begin(), weights.end(), states.data, 0.0);
  };
  expect_gradients_of(list, loss_and_gradient);
  loss_and_gradient();
  const std::vector<double> gradient = dx;
  for (size_t i = 0; i < x.size(); i++) {
    constexpr double h = 1e-5;
    const double kept = x[i];
    x[i] = kept + h;
    const double above = loss_and_gradient();
    x[i] = kept - h;
    const double below = loss_and_gradient();
    x[i] = kept;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 1e-8) << i;
  }
}

// One unit by hand: with all weights 1 and biases 0, x = 1 and no state before, r and z are σ(1) and n is tanh(1).
TEST(GatedRecurrent, FollowsItsEquations) {
  ParameterList<double> list;
  const GatedRecurrent<double> layer(list, "layer", 1, 1);
  list.allocate();
  for (const Parameter<double>& p : list.all()) std::fill_n(p.value, p.size(), p.shape.size() == 2 ? 1.0 : 0.0);
  const double x[] = {1, 0.5};
  Arena arena;
  Context context{arena};
  GatedRecurrent<double>::Saved saved;
  const Matrix<double> states = layer.forward({x, 2, 1}, 1, context, saved);
  const auto sigmoid = [](double value) { return 1 / (1 + std::exp(-value)); };
  const double first = (1 - sigmoid(1)) * std::tanh(1);
  EXPECT_NEAR(states(0, 0), first, 1e-15);
  const double gate = sigmoid(0.5 + first);
  EXPECT_NEAR(states(1, 0), (1 - gate) * std::tanh(0.5 + gate * first) + gate * first, 1e-15);
}

TEST(RecallTexts, EndWithTheQuestionForTheirFirstSymbol) {
  const RecallTexts texts = recall_texts(50, 7, 1, 0);
  for (int64_t i = 0; i < 50; i++) {
    const std::span<const int32_t> text = texts.text.sequence(i);
    ASSERT_EQ(text.size(), 8u);
    EXPECT_EQ(text.front(), texts.labels[to_size(i)]);
    EXPECT_LT(text.front(), kRecallSymbols);
    EXPECT_EQ(text.back(), kRecallVocab - 1);
    for (const int32_t id : text.subspan(1, 6)) EXPECT_TRUE(id >= kRecallSymbols && id < kRecallVocab - 1);
  }
}

TEST(SymbolSource, ProbabilitiesSumToOneAndBracketsAreClosedByTheirPartners) {
  const SymbolSource source({.symbols = 5, .order = 2, .brackets = 2}, 3);
  Random random(3, Stream::test);
  const std::vector<int32_t> text = source.text(20000, random);
  const std::vector<double> losses = source.losses(std::span(text).first(300));
  std::vector<int32_t> prefix;
  for (size_t t = 0; t < losses.size(); t++) {
    double sum = 0;
    for (int32_t v = 0; v < source.shape().vocab(); v++) {
      prefix.push_back(v);
      const double loss = source.losses(prefix).back();
      sum += std::exp(-loss);
      if (v == text[t]) {
        EXPECT_NEAR(loss, losses[t], 1e-12);
      }
      prefix.pop_back();
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    prefix.push_back(text[t]);
  }
  int64_t open = -1, wrong = 0, closed = 0;  // symbols 5 and 6 open a bracket, 7 and 8 close it
  for (const int32_t symbol : text) {
    if (symbol >= 5) wrong += symbol >= 7 ? open != symbol - 7 : open >= 0;
    if (symbol >= 7) closed++;
    if (symbol >= 5) open = symbol >= 7 ? -1 : symbol - 5;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(closed, 500);
}

TEST(SymbolSource, HasTheFrequenciesOfItsProbabilities) {
  const SymbolSource source({.symbols = 3, .order = 1, .brackets = 0}, 5);
  Random random(5, Stream::test);
  constexpr int64_t kDraws = 30000;
  const std::vector<int32_t> text = source.text(kDraws, random);
  double counts[3][3] = {}, totals[3] = {};
  for (size_t t = 1; t < text.size(); t++) counts[text[t - 1]][text[t]]++, totals[text[t - 1]]++;
  for (int32_t a = 0; a < 3; a++)
    for (int32_t b = 0; b < 3; b++) {
      const double p = std::exp(-source.losses(std::vector<int32_t>{a, b}).back());
      const double deviation = std::sqrt(p * (1 - p) / totals[a]);
      EXPECT_NEAR(counts[a][b] / totals[a], p, 5 * deviation) << a << " " << b;
    }
}

std::vector<std::vector<int32_t>> random_ngram_texts() {
  Random random(1, Stream::test);
  std::vector<std::vector<int32_t>> texts(6);
  for (auto& text : texts)
    for (int i = 0; i < 20; i++) text.push_back(static_cast<int32_t>(random.below(4)));
  return texts;
}

TEST(NgramModel, ProbabilitiesSumToOneAndAreAboveZero) {
  const auto texts = random_ngram_texts();
  for (int64_t order = 1; order <= 5; order++) {
    const NgramModel model(order, 6, texts);  // two symbols never occur
    for (size_t end = 0; end < 20; end++) {
      double sum = 0;
      for (int32_t symbol = 0; symbol < 6; symbol++) {
        const double p = model.probability(std::span(texts[0]).first(end), symbol);
        EXPECT_GT(p, 0);
        sum += p;
      }
      EXPECT_NEAR(sum, 1, 1e-12) << order << " " << end;
    }
  }
}

// "a b a b a" with order 2. Bigrams: ab 2, ba 2. Their continuations: a follows 1 symbol, b follows 1. No bigram occurs
// once, so the discount is the least, 0.1; both continuations are counted once, so theirs is the largest, 0.9.
TEST(NgramModel, HasTheProbabilitiesOfAnExampleByHand) {
  const NgramModel model(2, 3, {{0, 1, 0, 1, 0}});
  const double a = (1 - 0.9) / 2 + 0.9 * 2 / 2 / 3, c = 0.9 * 2 / 2 / 3;  // p_1
  EXPECT_NEAR(model.probability({}, 0), a, 1e-15);
  EXPECT_NEAR(model.probability({}, 2), c, 1e-15);
  const std::vector<int32_t> before = {1};
  EXPECT_NEAR(model.probability(before, 0), (2 - 0.1) / 2 + 0.1 * 1 / 2 * a, 1e-15);
  EXPECT_NEAR(model.probability(before, 2), 0.1 * 1 / 2 * c, 1e-15);
}

TEST(NgramModel, RefusesOtherOrdersAndVocabularies) {
  expect_contains(error_of([] { NgramModel(6, 4, {}); }), "order must be from 1 to 5 (is 6)");
  expect_contains(error_of([] { NgramModel(2, 300, {}); }), "vocab must be from 1 to 256 (is 300)");
}

// 12 losses, of which the last three are averaged; the mean of few is that of the last.
TEST(SmallTraining, TheLastLossIsTheMeanOfTheLastQuarter) {
  EXPECT_DOUBLE_EQ(last_loss({9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(last_loss({9, 5}), 5);
}

// The gradients before training, from zeros: those of one batch, twice.
TEST(SmallTraining, InitialGradientsAreThoseOfTheMeanLossAndDoNotAddUp) {
  Transformer<float> model(tiny_language_model());
  const std::vector<double> norms = initial_gradient_norms(model, two_texts(), 3, 1);
  EXPECT_EQ(initial_gradient_norms(model, two_texts(), 3, 1), norms);
  double squares = 0;
  for (const Parameter<float>& p : model.parameters().all())
    for (int64_t i = 0; p.name.starts_with("decoder.layers.1.") && i < p.size(); i++)
      squares += std::pow(static_cast<double>(p.gradient[i]) / 6, 2);  // of 4 + 2 labels
  ASSERT_EQ(norms.size(), 3u);
  EXPECT_NEAR(norms[1], std::sqrt(squares), 1e-12 * norms[1]);
}

TEST(SmallTraining, LearnsARepeatedText) {
  Transformer<float> model(small_language_model(6, 1, 16, 2, 8));
  const auto make_batch = [](int64_t) {
    Batch batch;
    append_text(batch, std::vector<int32_t>{0, 3, 1, 5, 2, 4, 0});
    return batch;
  };
  const std::vector<double> losses = train_small(model, {.steps = 60, .rate = 1e-2}, 1, make_batch);
  EXPECT_GT(losses.front(), 1);
  EXPECT_LT(losses.back(), 0.1);
  const std::vector<double> tokens = token_losses(model, make_batch(0));
  EXPECT_EQ(tokens.size(), 6u);
  EXPECT_NEAR(mean_of_numbers(tokens), losses.back(), 0.05);
}

}  // namespace
}  // namespace qkv
