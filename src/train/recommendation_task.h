// Recommendation as something to train: a log in batches, and where the item before each user's last one is ranked.
#pragma once

#include <string>
#include <vector>

#include "data/item_batches.h"
#include "eval/ranking.h"
#include "model/replicas.h"
#include "qkv/recommendation.h"
#include "train/feature_sums.h"
#include "train/task.h"

namespace qkv {

class RecommendationTask : public Task {
 public:
  // recipe and log outlive the task. fingerprint: of log and features. start: weights to start from, if the file is
  // there. features: as many as the model has. Throws Error if nobody has something to learn.
  RecommendationTask(const RecommendationRecipe& recipe, const Interactions& log, std::string fingerprint,
                     std::string start = "", const ItemFeatures& features = {});

  std::string fingerprint() const override { return fingerprint_; }
  bool seek(const StreamPosition& position) override;
  const StreamPosition& position() const override { return position_; }
  void next() override;
  std::string summary() const override;

  void initialise(ParameterList<float>& parameters, const TrainingConfig& config) const override;
  Loss loss_and_gradient(const Transformer<float>& model, Context& c) override;
  void after_step(const Transformer<float>& model) override;
  DevScore evaluate(const Transformer<float>& model, Arena& arena) override;
  std::string metric() const override { return "NDCG@10"; }
  void rehearse(const Transformer<float>& model, const Transformer<float>& candidate, Arena& arena) override;

  size_t bytes() const override { return replicas_.bytes(); }

  int64_t batches() const { return list_.size(); }  // of the present epoch

 private:
  Loss model_loss_and_gradient(const Transformer<float>& model, Context& c);  // but for the features
  // Of some sequences of the batch, of which `first` is the first token.
  Loss part_loss_and_gradient(const Transformer<float>& model, const Batch& part, int64_t first, Context& c) const;

  const RecommendationRecipe& recipe_;
  const Interactions& log_;
  Split split_;
  std::string fingerprint_, start_;
  ItemBatches batches_;
  StreamPosition position_;
  BatchList list_;  // of the present epoch
  Batch batch_;
  std::vector<int32_t> candidates_;  // [tokens, 1 + negatives], unless the loss is over all items
  std::vector<float> log_draws_;
  Replicas replicas_;  // where the model is small
  FeatureSums features_;
  std::vector<float> features_before_;  // the weights of the features before the optimiser's step
};

}  // namespace qkv
