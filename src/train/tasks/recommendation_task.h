// The task of training a recommender: batches of a log, and the rank of the item before each user's last one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/item_batches.h"
#include "data/log/transitions.h"
#include "eval/ranking.h"
#include "model/layers/sampled_loss.h"
#include "qkv/recommendation.h"
#include "train/optimizer/feature_sums.h"
#include "train/optimizer/step_table.h"
#include "train/tasks/task.h"

namespace qkv {

class RecommendationTask : public Task {
 public:
  // Returns the number of batches of the first epoch.
  static int64_t batches(const RecommendationRecipe& recipe, const Interactions& log);

  // recipe and log must outlive the task. fingerprint identifies log and features. features are those of the model.
  // Throws Error if no user has an event for validation.
  RecommendationTask(const RecommendationRecipe& recipe, const Interactions& log, std::string fingerprint,
                     const ItemFeatures& features = {});

  std::string fingerprint() const override { return fingerprint_; }
  void partition(const RankPartition& partition) override { partition_ = partition; }
  bool seek(const StreamPosition& position) override;
  const StreamPosition& position() const override { return position_; }
  void next() override;
  void skip() override;
  double part_of_epoch() const override { return static_cast<double>(position_.batch) / batches_per_epoch(); }
  double batches_per_epoch() const override { return static_cast<double>(list_.size()); }
  std::string summary() const override;

  Loss loss_and_gradient(BatchGradients& gradients, Context& c) override;
  std::string places(const StreamPosition& position, TokenSide side, std::span<const int64_t> rows) override;
  StepTable* step_table() override { return step_table_ ? &*step_table_ : nullptr; }
  void after_step(const Transformer<float>& model) override;
  DevScore evaluate(const Transformer<float>& model, Arena& arena) override;
  Metric metric() const override { return {"NDCG@10"}; }
  std::vector<EvaluationReport::Candidate> baselines() override;
  std::string verdict(double best) const override;
  void dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) override;

  size_t data_bytes() const override {
    return log_.bytes() + batches_.bytes() + list_.bytes() + (transitions_ ? transitions_->bytes() : 0);
  }
  size_t bytes() const override { return step_table_ ? step_table_->bytes() : 0; }

 private:
  // The score of a ranker on the validation, whose users are dealt out to ranks.
  RankingScore rank_validation(ItemRanker& ranker) const;
  // The score of a model with transitions, with the weight that is best for it.
  DevScore evaluate_with_transitions(const Transformer<float>& model, Arena& arena);
  // Leaves out the gradients of the features.
  Loss model_loss_and_gradient(BatchGradients& gradients, Context& c) const;

  const RecommendationRecipe& recipe_;
  const Interactions& log_;
  RankPartition partition_;
  Split split_;
  std::string fingerprint_;
  ItemBatches batches_;
  StreamPosition position_;
  BatchList list_;  // of the current epoch
  Batch batch_;
  SampledLoss sampled_;
  std::vector<int32_t> candidates_;  // [tokens, 1 + negatives], or [negatives] shared by all tokens; none for softmax
  std::vector<float> log_draws_;
  std::optional<StepTable> step_table_;  // if updates are sparse
  std::vector<EvaluationReport::Candidate> baselines_;
  std::optional<Transitions> transitions_;  // counted before the validation, with weight 1
  FeatureSums features_;
  std::vector<float> features_before_;  // weights of the features before the step of the optimizer
};

}  // namespace qkv
