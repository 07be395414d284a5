// The run of a recommender: its model, and the log with the names of its items and users.
#pragma once

#include <memory>
#include <string>

#include "io/saved_interactions.h"
#include "model/transformer.h"
#include "qkv/recommendation.h"

namespace qkv {

struct RecommenderRun {
  RecommendationConfig recommendation;
  SavedInteractions log;
  std::unique_ptr<Transformer<float>> model;  // as many tokens as the log has items
};

// From a directory that is not trusted. Throws Error, naming the file.
RecommenderRun load_recommender(const std::string& directory);

}  // namespace qkv
