// The run of a recommender.
#pragma once

#include <memory>
#include <string>

#include "io/run_directory.h"
#include "io/saved_interactions.h"
#include "model/transformer.h"
#include "qkv/inspect.h"
#include "qkv/recommendation.h"

namespace qkv {

struct RecommenderRun {
  static constexpr RunKind kKind = RunKind::recommender;

  ModelConfig config;  // decoder-only, with the items of the log as tokens
  ItemInputs items;
  RecommendationConfig recommendation;
  SavedInteractions log;
  std::unique_ptr<Transformer<float>> model = nullptr;  // null until the weights are loaded

  // Reads and writes the files of this kind: recommendation.json and the log with the names of its users and items.
  // Nothing in the directory is trusted. Throws Error, naming file and field.
  static RecommenderRun read(const RunDirectory& run, const ModelConfig& config, const ItemInputs& items);
  void write(const RunDirectory& run) const;
};

// Reads recommendation.json alone, without the log. Throws Error, naming file and field.
RecommendationConfig read_recommendation(const RunDirectory& run);

}  // namespace qkv
