// Which recipes allow sparse updates: gradients and steps of Adam for the items of a batch only.
#pragma once

#include <string_view>

#include "qkv/recommendation.h"

namespace qkv {

// Returns what sparse updates require and the recipe lacks, or nothing. has_features: whether items have features.
std::string_view missing_for_sparse_updates(const RecommendationRecipe& recipe, bool has_features);

}  // namespace qkv
