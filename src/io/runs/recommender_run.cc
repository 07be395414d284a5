#include "io/runs/recommender_run.h"

#include <filesystem>

#include "core/fail.h"
#include "io/runs/run_config.h"

namespace qkv {

namespace {

std::optional<TransitionConfig> read_transitions(const RunDirectory& run, int64_t max_length) {
  if (!std::filesystem::exists(run.transitions())) return {};
  const auto transitions = read_fields<TransitionConfig>(run, run.transitions());
  check_ranges(transitions, run.transitions() + ": ");
  if (transitions.events > max_length)
    fail("{}: events must be at most {}, max_length in {} (is {})", run.transitions(), max_length, run.config(),
         transitions.events);
  return transitions;
}

}  // namespace

RecommendationConfig read_recommendation(const RunDirectory& run) {
  const auto recommendation = read_fields<RecommendationConfig>(run, run.recommendation());
  try {
    check(recommendation);
  } catch (const Error& error) {
    fail("{}: {}", run.recommendation(), error.what());
  }
  return recommendation;
}

RecommenderRun RecommenderRun::read(const RunDirectory& run, const ModelConfig& config, const ItemInputs& items) {
  if (config.has_encoder())
    fail("{}: encoder_layers must be 0 in a recommender (is {})", run.config(), config.encoder_layers);
  if (config.output_softcap != 0)
    fail("{}: output_softcap must be 0 in a recommender (is {})", run.config(), config.output_softcap);
  RecommenderRun loaded{config, items, read_recommendation(run), read_log(run)};
  if (loaded.log.data.item_count() != config.target_vocab)
    fail("{}: target_vocab must be {}, the number of items in {} (is {})", run.config(), loaded.log.data.item_count(),
         run.items(), config.target_vocab);
  const int64_t gap_buckets = loaded.recommendation.time_gaps ? kGapBuckets : 0;
  if (items.gap_buckets != gap_buckets)
    fail("{}: gap_buckets must be {}, because {} has time_gaps {} (is {})", run.config(), gap_buckets,
         run.recommendation(), loaded.recommendation.time_gaps, items.gap_buckets);
  loaded.transitions = read_transitions(run, config.max_length);
  return loaded;
}

void RecommenderRun::write(const RunDirectory& run) const {
  write_fields(run.recommendation(), recommendation);
  write_log(run, log);
  if (transitions) write_fields(run.transitions(), *transitions);
}

Split split_of(const RecommendationConfig& config, const Interactions& log) {
  Split split = Split::of(log, config.split, config.test_share);
  split.holdout = config.holdout;
  return split;
}

std::unique_ptr<Transitions> transitions_of(const RecommenderRun& run) {
  if (!run.transitions || run.transitions->weight == 0) return nullptr;
  const Interactions& log = run.log.data;
  return std::make_unique<Transitions>(
      log, [&](int64_t user) { return std::ssize(log.of(user)); }, *run.transitions);
}

}  // namespace qkv
