// Gradients of a batch of texts in parts: they equal those of the whole, and both passes have the same dropout masks.
#include "model/text_parts.h"

#include <gtest/gtest.h>

#include <limits>

#include "model/layers/finite_check.h"
#include "tests/model/text_head_cases.h"
#include "tests/support/kernels.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::CurvedLoss;
using testing::randomize_with_head;
using testing::relative_error;
using testing::SpoiledArena;
using testing::text_head_cases;
using testing::TextHeadCase;

// 27 tokens; with parts of at most 8 tokens: {4, 1, 2}, {6}, {9}, {3, 2}.
const std::vector<int64_t> kPartLengths = {4, 1, 2, 6, 9, 3, 2};
constexpr int64_t kPartTokens = 8;

template <class Real>
struct PartsResult {
  double loss = 0;
  std::vector<Real> gradient;
};

// Starts from gradients of 1, to which those of the batch are added.
template <class Real>
PartsResult<Real> in_parts(const Transformer<Real>& model, const Batch& batch, int64_t part_tokens, bool training) {
  SpoiledArena arena;
  Context context{arena, training, 3, 5};
  const std::span<Real> gradients = model.parameters().gradients();
  std::ranges::fill(gradients, Real(1));
  const CurvedLoss<Real> loss_of(model);
  TextParts<Real> parts;
  const Loss loss = parts.loss_and_gradient(model, batch, loss_of, part_tokens, context);
  EXPECT_EQ(loss_of.calls, 1);
  EXPECT_EQ(loss.tokens, std::ssize(kPartLengths));
  return {loss.loss, {gradients.begin(), gradients.end()}};
}

template <class Real>
struct PartsModel {
  explicit PartsModel(const TextHeadCase& c)
      : batch(testing::random_texts(c.config, kPartLengths)), model(c.config, {}, c.head) {
    model.parameters().allocate_gradients();
    randomize_with_head(model, 1);
  }

  Batch batch;
  Transformer<Real> model;
};

TEST(TextParts, HaveTheGradientOfTheWholeBatch) {
  for (const TextHeadCase& c : text_head_cases()) {
    SCOPED_TRACE(c.name);
    const PartsModel<double> exact(c);
    const PartsModel<float> single(c);
    const PartsResult<double> whole = in_parts(exact.model, exact.batch, 1000, false);
    const PartsResult<float> plain = in_parts(single.model, single.batch, 1000, false);
    for (const int64_t tokens : {int64_t{1}, kPartTokens, int64_t{15}}) {
      const PartsResult<double> parts = in_parts(exact.model, exact.batch, tokens, false);
      EXPECT_NEAR(parts.loss, whole.loss, 1e-13 * std::abs(whole.loss));
      EXPECT_LE(relative_error(parts.gradient, whole.gradient), 1e-13);
      EXPECT_LE(relative_error(in_parts(single.model, single.batch, tokens, false).gradient, plain.gradient), 1e-6);
    }
  }
}

TEST(TextParts, HaveTheOutputsOfTheWholeBatch) {
  for (const TextHeadCase& c : text_head_cases()) {
    SCOPED_TRACE(c.name);
    const PartsModel<double> m(c);
    SpoiledArena arena;
    Context context{.arena = arena, .inference = true};
    const Matrix<const double> whole = m.model.text_outputs(m.batch, context);
    const Matrix<double> v = context.arena.matrix<double>(whole.rows, whole.cols);
    TextParts<double>().outputs(m.model, m.batch, kPartTokens, context, v);
    for (int64_t n = 0; n < v.rows; n++)
      for (int64_t k = 0; k < v.cols; k++) EXPECT_NEAR(v.row(n)[k], whole.row(n)[k], 1e-13) << n;
  }
}

// The loss is that of the first pass, the gradient that of the second: they fit only with the same masks.
TEST(TextParts, HaveTheSameDropoutMasksInBothPasses) {
  for (const size_t number : {1, 3, 7}) {
    const TextHeadCase c = text_head_cases()[number];
    SCOPED_TRACE(c.name);
    const PartsModel<double> m(c);
    const std::vector<double> gradient = in_parts(m.model, m.batch, kPartTokens, true).gradient;
    for (const auto& p : m.model.parameters().all()) {
      if (p.name.find("bias") == std::string::npos && p.name != "dense.0.weight") continue;
      const double* first = gradient.data() + (p.value - m.model.parameters().values().data());
      std::vector<double> own(first, first + p.size());
      for (double& g : own) g -= 1;
      if (std::ranges::all_of(own, [](double g) { return std::abs(g) < 1e-9; })) continue;  // biases of keys
      SCOPED_TRACE(p.name);
      testing::expect_gradient({p.value, to_size(p.size())}, own,
                               [&] { return in_parts(m.model, m.batch, kPartTokens, true).loss; });
    }
  }
}

// The same text twice, in one part or in two.
TEST(TextParts, DropOtherValuesOfEqualTexts) {
  const TextHeadCase c = text_head_cases()[1];
  Transformer<float> model(c.config, {}, c.head);
  model.parameters().allocate_gradients();
  randomize_with_head(model, 1);
  Batch batch;
  for (int i = 0; i < 4; i++) batch.source.append(std::vector<int32_t>{3, 4, 5});
  for (const int64_t tokens : {3, 6, 100}) {
    Arena arena;
    Context context{arena, true, 3, 5};
    const auto loss_of = [&](Matrix<const float> v, Matrix<float> dv) {
      for (int64_t a = 0; a < v.rows; a++)
        for (int64_t b = 0; b < a; b++)
          EXPECT_FALSE(std::equal(v.row(a), v.row(a) + v.cols, v.row(b))) << a << " and " << b << " of " << tokens;
      for (int64_t n = 0; n < dv.rows; n++) std::fill_n(dv.row(n), dv.cols, 0.0f);
      return Loss();
    };
    TextParts<float>().loss_and_gradient(model, batch, loss_of, tokens, context);
  }
}

TEST(TextParts, NeedTheMemoryOfOnePart) {
  const TextHeadCase c = text_head_cases()[3];
  Transformer<float> model(c.config, {}, c.head);
  model.parameters().allocate_gradients();
  const Batch batch = testing::random_texts(c.config, std::vector<int64_t>(200, 10));
  const auto bytes = [&](int64_t part_tokens) {
    Arena arena;
    Context context{arena, true, 3, 5};
    const CurvedLoss<float> loss_of(model);
    TextParts<float>().loss_and_gradient(model, batch, loss_of, part_tokens, context);
    return arena.high_water();
  };
  EXPECT_LE(4 * bytes(100), bytes(2000));
}

// Gradients are complete only after the last part.
TEST(TextParts, CompleteGradientsInTheLastPart) {
  const PartsModel<float> m(text_head_cases()[3]);
  Arena arena;
  Context context{arena, true, 3, 5};
  std::vector<int64_t> completed;
  std::vector<float> at_completion;
  const auto on_complete = [&](int64_t first) {
    completed.push_back(first);
    const std::span<const float> gradients = m.model.parameters().gradients();
    if (at_completion.empty()) at_completion.assign(gradients.begin(), gradients.end());
  };
  context.on_complete = on_complete;
  const CurvedLoss<float> loss_of(m.model);
  TextParts<float>().loss_and_gradient(m.model, m.batch, loss_of, kPartTokens, context);
  ASSERT_FALSE(completed.empty());
  EXPECT_TRUE(std::ranges::is_sorted(completed, std::greater<>()));
  EXPECT_EQ(std::ranges::adjacent_find(completed), completed.end());
  const auto& first = m.model.parameters().all()[to_size(completed.front())];
  const auto from = first.gradient - m.model.parameters().gradients().data();
  EXPECT_TRUE(
      std::equal(at_completion.begin() + from, at_completion.end(), m.model.parameters().gradients().begin() + from));
}

TEST(TextParts, NameTheTokensOfAPartThatAreNotFinite) {
  const PartsModel<float> m(text_head_cases()[3]);
  float* types = testing::values_of(m.model.parameters(), "source_embedding.weight");
  const int32_t rare = m.batch.source.ids[to_size(m.batch.source.offsets[4])];
  std::fill_n(types + rare * m.model.config().d_model, 1, std::numeric_limits<float>::infinity());
  int64_t expected = 0;
  while (m.batch.source.ids[to_size(expected)] != rare) expected++;
  Arena arena;
  FiniteCheck check;
  Context context{arena, false, 3, 5};
  context.probe = &check;
  const CurvedLoss<float> loss_of(m.model);
  TextParts<float>().loss_and_gradient(m.model, m.batch, loss_of, kPartTokens, context);
  ASSERT_TRUE(check.found());
  EXPECT_EQ(check.found()->side, TokenSide::source);
  ASSERT_FALSE(check.found()->rows.empty());
  EXPECT_EQ(check.found()->rows.front(), expected);
}

}  // namespace
}  // namespace qkv
