// A probe that adds to an output changes the loss by as much as the gradient that it sees in the backward pass says.
#include "model/layers/probe.h"

#include <gtest/gtest.h>

#include <string>

#include "core/to_size.h"
#include "tests/support/models.h"

namespace qkv {
namespace {

// Adds step · (a pattern of the element's index) to one output, and sums the pattern times its gradient.
class Nudge final : public Probe {
 public:
  Nudge(std::string place, double step) : place_(std::move(place)), step_(step) {}

  using Probe::output;
  void output(std::string_view op, Pass pass, Matrix<double> m, int64_t) override {
    if (op == (pass == Pass::backward ? "attention" : "heads")) return;  // the gradients of q, k and v; no output
    std::string place;
    for (const Entry& part : parts()) place += part.name + (part.number < 0 ? " " : std::to_string(part.number) + " ");
    place += op == "heads" ? "attention" : std::string(op);
    if (place != place_) return;
    (pass == Pass::forward ? seen_forward : seen_backward)++;
    for (int64_t r = 0; r < m.rows; r++)
      for (int64_t i = 0; i < m.cols; i++) {
        const double pattern = static_cast<double>((3 * r + 7 * i) % 5) - 2;
        if (pass == Pass::forward) m.row(r)[i] += step_ * pattern;
        if (pass == Pass::backward) slope += pattern * m.row(r)[i];
      }
  }

  int seen_forward = 0, seen_backward = 0;
  double slope = 0;

 private:
  const std::string place_;
  const double step_;
};

Batch pairs_of_words() {
  Batch batch;
  testing::append_pair(batch, {3, 7, 4}, {5, 4});
  testing::append_pair(batch, {6, 5}, {8, 9, 3});
  return batch;
}

class ProbeSees : public ::testing::TestWithParam<NormPosition> {};

TEST_P(ProbeSees, TheGradientsOfWhatItMayChange) {
  ModelConfig config = testing::small_config();
  config.norm.position = GetParam();
  config.norm.final = GetParam() != NormPosition::post;
  Transformer<double> model(config);
  model.parameters().allocate_gradients();
  testing::randomize(model.parameters(), 1);
  const Batch batch = pairs_of_words();
  Arena arena;
  for (const std::string place :
       {"encoder embedding lookup", "decoder embedding lookup", "encoder layer0 self-attention attention",
        "encoder layer1 self-attention branch", "encoder layer1 feed-forward branch",
        "decoder layer0 self-attention attention", "decoder layer1 cross-attention attention",
        "decoder layer0 cross-attention branch", "decoder layer1 feed-forward branch"}) {
    SCOPED_TRACE(place);
    const auto loss_with = [&](Nudge& nudge) {
      Context context{arena};
      context.probe = &nudge;
      return model.loss_and_gradient(batch, Objective{}, context).loss;
    };
    constexpr double kStep = 1e-5;
    Nudge none(place, 0), up(place, kStep), down(place, -kStep);
    loss_with(none);
    EXPECT_EQ(none.seen_forward, 1);
    EXPECT_EQ(none.seen_backward, 1);
    const double difference = (loss_with(up) - loss_with(down)) / (2 * kStep);
    EXPECT_GT(std::abs(difference), 1e-3);
    EXPECT_NEAR(none.slope, difference, 1e-6 * (1 + std::abs(difference)));  // the error is of the order of kStep²
  }
}

INSTANTIATE_TEST_SUITE_P(Norms, ProbeSees,
                         ::testing::Values(NormPosition::post, NormPosition::pre, NormPosition::query,
                                           NormPosition::branch, NormPosition::sandwich));

}  // namespace
}  // namespace qkv
