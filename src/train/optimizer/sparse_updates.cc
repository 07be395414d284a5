#include "train/optimizer/sparse_updates.h"

namespace qkv {

std::string_view missing_for_sparse_updates(const RecommendationRecipe& recipe, bool has_features) {
  const TrainingConfig& t = recipe.training;
  if (recipe.recommendation.loss == ItemLoss::softmax) return "a loss over drawn negatives (loss is softmax)";
  if (!recipe.model.tied_output) return "tied_output = true";
  if (has_features) return "a model without item features";
  if (t.moments != Moments::float32) return "moments = float32";
  if (t.accumulate != 1) return "accumulate = 1";
  if (t.shards != 1) return "shards = 1";
  if (t.weight_decay != 0) return "weight_decay = 0";
  if (t.cooldown != 0) return "cooldown = 0";
  if (!(t.beta1 * t.beta1 < t.beta2)) return "beta1 below the square root of beta2";
  return "";
}

}  // namespace qkv
