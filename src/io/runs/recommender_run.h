// The run of a recommender.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/log/split.h"
#include "data/log/transitions.h"
#include "io/runs/run_directory.h"
#include "io/runs/saved_interactions.h"
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
  std::optional<TransitionConfig> transitions = {};     // if training fitted them

  // Reads and writes the files of this kind: recommendation.json, the log with the names of its users and items, and
  // transitions.json.
  // Nothing in the directory is trusted. Throws Error, naming file and field.
  static RecommenderRun read(const RunDirectory& run, const ModelConfig& config, const ItemInputs& items);
  void write(const RunDirectory& run) const;
};

// Returns the split by which a recommender is trained on a log.
Split split_of(const RecommendationConfig& config, const Interactions& log);

// Returns the transitions of all events of the run's log, or nothing if they do not change the scores.
std::unique_ptr<Transitions> transitions_of(const RecommenderRun& run);

// Reads recommendation.json alone, without the log. Throws Error, naming file and field.
RecommendationConfig read_recommendation(const RunDirectory& run);

}  // namespace qkv
