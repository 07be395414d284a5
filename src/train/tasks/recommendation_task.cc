#include "train/tasks/recommendation_task.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "data/log/log_shape.h"
#include "eval/baselines.h"
#include "eval/rankers.h"
#include "eval/transition_fit.h"
#include "io/runs/run_config.h"
#include "io/runs/run_kinds.h"
#include "recommend/item_scores.h"
#include "recommend/model_ranker.h"
#include "train/auto_preset.h"
#include "train/engine/gradient_engine.h"
#include "train/tasks/objective.h"
#include "train/tasks/source_locations.h"

namespace qkv {
namespace {

constexpr int64_t kMostPairs = 5'000'000'000;  // users × items that an evaluation ranks

bool draws_negatives(const RecommendationConfig& config) { return config.loss != ItemLoss::softmax; }

// Returns the largest number of items that a batch can have: inputs, labels and negatives.
int64_t most_items(const RecommendationRecipe& recipe) {
  const RecommendationConfig& config = recipe.recommendation;
  const int64_t tokens = recipe.training.batch_tokens;
  return 2 * tokens + config.negatives * (config.negative_scope == NegativeScope::token ? tokens : 1);
}

ItemBatchOptions options_of(const RecommendationRecipe& recipe, const Split& split) {
  const RecommendationConfig& config = recipe.recommendation;
  return {recipe.model.max_length,
          recipe.training.batch_tokens,
          split,
          config.positions_from_end,
          draws_negatives(config) ? config.negatives : 0,
          config.sampling,
          config.repeats,
          config.negative_scope,
          static_cast<uint64_t>(recipe.training.seed),
          config.time_gaps};
}

std::vector<EvaluationReport::Measure> measures_of(const RankingScore& score) {
  return {{"NDCG@10", score.ndcg[1], 4}, {"HR@10", score.hr[1], 4}, {"MRR@10", score.mrr[1], 4}};
}

}  // namespace

RecommendationTask::RecommendationTask(const RecommendationRecipe& recipe, const Interactions& log,
                                       std::string fingerprint, const ItemFeatures& features)
    : recipe_(recipe),
      log_(log),
      split_(split_of(recipe.recommendation, log)),
      fingerprint_(std::move(fingerprint)),
      batches_(log, options_of(recipe, split_)),
      sampled_(SampledLoss::of(recipe.recommendation, log.item_count())),
      features_(features) {
  if (recipe.recommendation.sparse_updates) step_table_.emplace(recipe.model, recipe.items, most_items(recipe));
  bool any = false;
  for (int64_t user = 0; user < log.user_count() && !any; user++)
    any = split_.target(log, user, HeldOut::validation).value_or(0) > 0;
  if (!any) fail("training: no user has a validation event with events before it");
  if (recipe.recommendation.transitions) {
    TransitionConfig config{.weight = 1, .kept = kept_successors(log.item_count())};
    config.events = std::min(config.events, recipe.model.max_length);
    transitions_.emplace(count_transitions(log, split_, HeldOut::validation, config));
    fit_shape(log, split_, recipe.recommendation.repeats, *transitions_);
  }
}

int64_t RecommendationTask::batches(const RecommendationRecipe& recipe, const Interactions& log) {
  return ItemBatches(log, options_of(recipe, split_of(recipe.recommendation, log))).shuffled(0).size();
}

bool RecommendationTask::seek(const StreamPosition& position) {
  list_ = batches_.shuffled(position.epoch);
  position_ = position;
  return position.window == 0 && position.batch < list_.size();
}

void RecommendationTask::next() {
  const std::span<const int64_t> users = list_[position_.batch];
  const uint64_t index = static_cast<uint64_t>(position_.epoch) << 32 | static_cast<uint64_t>(position_.batch);
  batches_.fill(users, index, batch_);
  const RecommendationConfig& config = recipe_.recommendation;
  if (draws_negatives(config) && config.negative_scope == NegativeScope::batch)
    batches_.draw_shared(index, candidates_, log_draws_);
  else if (draws_negatives(config))
    batches_.draw(users, batch_, index, candidates_, log_draws_);
  if (step_table_) {
    step_table_->clear();  // negatives first: those that are shared remain in increasing order
    for (std::vector<int32_t>* ids : {&candidates_, &batch_.target.ids, &batch_.labels}) step_table_->replace(*ids);
  }
  skip();
}

void RecommendationTask::skip() {
  if (++position_.batch == list_.size()) seek({position_.epoch + 1, 0, 0});
}

std::string RecommendationTask::summary() const {
  std::string line = fmt::format("training data: {} users, {} next items, {} batches per epoch", batches_.users(),
                                 batches_.tokens(), list_.size());
  if (transitions_)
    line +=
        fmt::format("; transitions between {} pairs of items, {:.1f} MiB, decay {}, scale {}", transitions_->pairs(),
                    mebibytes(transitions_->bytes()), transitions_->config().decay, transitions_->config().scale);
  return line;
}

Loss RecommendationTask::loss_and_gradient(BatchGradients& gradients, Context& c) {
  const Transformer<float>* const model = gradients.host_model();
  const Parameter<float>* const features = model ? model->feature_table() : nullptr;
  Context own = c;
  if (features) own.on_complete = {};  // the gradients of the features follow
  const Loss loss = model_loss_and_gradient(gradients, own);
  if (features) {
    features_before_.assign(features->value, features->value + features->size());
    // The table holds the sum over all batches of the shard so far, so the gradients of the features are computed from
    // scratch.
    std::fill_n(features->gradient, features->size(), 0.0f);
    features_.add_gradient(model->item_table().gradient_matrix(), features->gradient_matrix());
    c.probed_gradient("item features", features->gradient_matrix());
  }
  return loss;
}

std::string RecommendationTask::places(const StreamPosition& position, TokenSide, std::span<const int64_t> rows) {
  seek(position);
  const std::span<const int64_t> users = list_[position.batch];
  std::vector<std::string> names;
  for (const int64_t s : batch_.target.sequences_of(rows)) names.push_back(log_.users[to_size(users[to_size(s)])]);
  if (rows.empty())
    for (const int64_t user : users) names.push_back(log_.users[to_size(user)]);
  return name_users(names);
}

Loss RecommendationTask::model_loss_and_gradient(BatchGradients& gradients, Context& c) const {
  const RecommendationConfig& config = recipe_.recommendation;
  if (!draws_negatives(config)) return gradients.loss_and_gradient(batch_, objective_of(recipe_.training), c);
  const int64_t of_token = config.negative_scope == NegativeScope::token ? config.negatives + 1 : 0;
  return gradients.loss_and_gradient(batch_, Samples{sampled_, candidates_, log_draws_, of_token}, c);
}

void RecommendationTask::after_step(const Transformer<float>& model) {
  const Parameter<float>* features = model.feature_table();
  if (!features) return;
  const Matrix<float> G = features->matrix();
  features_.add_change(G, {features_before_.data(), G.rows, G.cols}, 0, model.item_table().matrix());
}

DevScore RecommendationTask::evaluate(const Transformer<float>& model, Arena& arena) {
  if (transitions_) return evaluate_with_transitions(model, arena);
  const std::shared_ptr<const InferenceEngine> engine = make_host_inference(model);
  ModelRanker ranker(*engine, recipe_.recommendation.positions_from_end, arena);
  const RankingScore found = rank_validation(ranker);
  return {0, found.ndcg[1], {}, measures_of(found)};
}

std::vector<EvaluationReport::Candidate> RecommendationTask::baselines() {
  baselines_.clear();
  rank_baselines(log_, split_, HeldOut::validation, [&](const char* name, ItemRanker& ranker) {
    baselines_.push_back({name, measures_of(rank_validation(ranker))});
  });
  return baselines_;
}

RankingScore RecommendationTask::rank_validation(ItemRanker& ranker) const {
  const RankingOptions options{.split = split_,
                               .part = HeldOut::validation,
                               .repeats = recipe_.recommendation.repeats,
                               .next = recipe_.recommendation.holdout,
                               .most_users = users_for(log_.item_count(), kMostPairs),
                               .users_at_once = kUsersAtOnce * partition_.ranks()};
  PartitionedRanker dealt(ranker, log_.item_count(), partition_);
  return rank_targets(log_, options, dealt);
}

std::string RecommendationTask::verdict(double best) const {
  const auto value = [](const EvaluationReport::Candidate& c) { return c.measures[0].value; };
  const auto top = std::ranges::max_element(baselines_, {}, value);
  if (top == baselines_.end() || best >= value(*top)) return "";
  return fmt::format("the model is below the baseline {} (NDCG@10 {:.4f}, baseline {:.4f}); {}", top->name, best,
                     value(*top), advice(recipe_, shape_of(log_, split_, recipe_.model.max_length)));
}

// The score with transitions, as the run is served, decides which weights are the best. The model without them decides
// whether training still improves it: at first the scores with them hardly change, because the transitions alone are
// better than a model that has just begun to learn.
DevScore RecommendationTask::evaluate_with_transitions(const Transformer<float>& model, Arena& arena) {
  const std::shared_ptr<const InferenceEngine> engine = make_host_inference(model);
  const auto score = [&](Histories histories, Matrix<float> scores) {
    score_items(*engine, recipe_.recommendation.positions_from_end, histories, scores, arena);
  };
  const TransitionFit fit = fit_weight(log_, split_, recipe_.recommendation.repeats, *transitions_, score, partition_);
  TransitionConfig config = transitions_->config();
  config.weight = fit.weight;
  return {0,
          fit.with.ndcg,
          fit.without.ndcg,
          {{"NDCG@10", fit.with.ndcg, 4},
           {"HR@10", fit.with.hr, 4},
           {"MRR@10", fit.with.mrr, 4},
           {"transitions", fit.weight, 2},
           {"NDCG@10 without", fit.without.ndcg, 4}},
          [config](const RunDirectory& run) { write_fields(run.transitions(), config); }};
}

void RecommendationTask::dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) {
  const StreamPosition present = position_;
  const Arena::Scope scope(arena);
  int64_t most = 0;
  for (int64_t b = 0; b < list_.size(); b++)
    if (const int64_t tokens = batches_.tokens(list_[b]); tokens > most) most = tokens, position_.batch = b;
  next();
  seek(present);
  Context context = training_context(arena, recipe_.training, 0);
  loss_and_gradient(gradients, context);
  evaluate(candidate, arena);
}

}  // namespace qkv
