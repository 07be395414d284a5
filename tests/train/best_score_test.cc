// The choice of the best weights: a better measure wins, and of equal ones the lower loss.
#include "train/loop/best_score.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

// A task whose measure is higher for better weights.
class MeasuredTask : public Task {
 public:
  std::string fingerprint() const override { return ""; }
  void partition(const RankPartition&) override {}
  bool seek(const StreamPosition&) override { return true; }
  const StreamPosition& position() const override { return position_; }
  void next() override {}
  void skip() override {}
  double part_of_epoch() const override { return 0; }
  double batches_per_epoch() const override { return 1; }
  std::string summary() const override { return ""; }
  Loss loss_and_gradient(BatchGradients&, Context&) override { return {}; }
  std::string places(const StreamPosition&, TokenSide, std::span<const int64_t>) override { return ""; }
  DevScore evaluate(const Transformer<float>&, Arena&) override { return {}; }
  Metric metric() const override { return {"accuracy"}; }
  void dry_run(BatchGradients&, const Transformer<float>&, Arena&) override {}

 private:
  StreamPosition position_;
};

DevScore measured(double metric, double loss) {
  DevScore score;
  score.metric = metric;
  score.loss = loss;
  score.breaks_ties = true;
  return score;
}

class BestScores : public ::testing::Test {
 protected:
  BestScores() { config_.selection = Selection::metric; }

  // Evaluates candidates, and returns the name of the best one if it is the best so far, otherwise "".
  std::string evaluate(const std::vector<std::pair<std::string, DevScore>>& candidates) {
    EvaluationReport report;
    progress_.step++;
    best_.begin();
    for (const auto& [name, score] : candidates) best_.add(name, score, report);
    const bool is_improved = best_.is_improved();
    best_.end();
    return is_improved ? report.best : "";
  }

  TrainingConfig config_;
  MeasuredTask task_;
  Progress progress_;
  BestScore best_{config_, task_, progress_};
};

TEST_F(BestScores, OfEqualMeasuresTheLowerLossIsBetter) {
  EXPECT_EQ(evaluate({{"last", measured(0.5, 2)}, {"ema", measured(0.5, 1.5)}, {"average", measured(0.4, 1)}}), "ema");
  EXPECT_EQ(evaluate({{"last", measured(0.5, 1.5)}}), "");
  EXPECT_EQ(progress_.evaluations_since_best, 1);
  EXPECT_EQ(evaluate({{"last", measured(0.5, 1.25)}}), "last");
  EXPECT_EQ(progress_.best_step, 3);
  EXPECT_EQ(progress_.evaluations_since_best, 0);
  EXPECT_EQ(evaluate({{"last", measured(0.4, 0.1)}}), "");
  EXPECT_EQ(evaluate({{"last", measured(0.6, 9)}}), "last");
  EXPECT_EQ(progress_.best_loss, 9);
}

TEST_F(BestScores, WithoutATieBreakTheFirstOfEqualMeasuresStays) {
  DevScore first = measured(0.5, 2), second = measured(0.5, 1);
  first.breaks_ties = second.breaks_ties = false;
  EXPECT_EQ(evaluate({{"last", first}, {"ema", second}}), "last");
  EXPECT_EQ(evaluate({{"last", second}}), "");
  EXPECT_FALSE(progress_.best_loss);
}

TEST_F(BestScores, AStateWithoutALossKeepsItsBestWeights) {
  progress_.step = progress_.best_step = 5;
  progress_.best = 0.5;
  EXPECT_EQ(evaluate({{"last", measured(0.5, 0.1)}}), "");
  EXPECT_FALSE(progress_.best_loss);
}

}  // namespace
}  // namespace qkv
