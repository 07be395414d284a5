// Training a recommender: a log, features of its items and its run directory.
#include "qkv/recommendation.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/hash.h"
#include "core/to_size.h"
#include "data/log/interactions.h"
#include "data/log/item_features.h"
#include "data/log/log_shape.h"
#include "io/atomic_file.h"
#include "io/runs/run.h"
#include "text/pieces/vocabulary.h"
#include "train/auto_preset.h"
#include "train/initial_run.h"
#include "train/loop/session.h"
#include "train/optimizer/feature_sums.h"
#include "train/tasks/recommendation_task.h"

namespace qkv {
namespace {

class RecommendationData {
 public:
  static constexpr bool kCountsBatches = true, kFitsLimits = false;  // it fits a recipe to its log

  static void check(const RecommendationRecipe& given, const RecommendationFiles& files);
  static RecommendationRecipe saved_recipe(const RunDirectory& run);

  RecommendationData(const TrainingSession& session, const RecommendationRecipe& given,
                     const RecommendationFiles& files);

  void set_sizes(RecommendationRecipe& recipe) const;
  void set_limits(RecommendationRecipe& recipe) const;
  int64_t batches(const RecommendationRecipe& recipe) const {
    return RecommendationTask::batches(recipe, run_.log.data);
  }
  std::unique_ptr<Task> make_task(const RecommendationRecipe& recipe) const;
  void create_run(const RunDirectory& run, const RecommendationRecipe& recipe);

 private:
  void read_log(const RecommendationRecipe& given);
  void read_features();
  std::string fingerprint() const;
  void write_start(const RunDirectory& run, const RecommendationRecipe& recipe) const;

  const TrainingSession& session_;
  const RecommendationFiles& files_;
  const bool time_gaps_;
  bool few_events_ = false;  // most users have two events, and min_events and split may follow
  RecommenderRun run_;       // its log; the model and the recommendation are set when the run is created
  ItemFeatures features_;
  std::optional<RecommenderRun> init_;
};

// Throws Error for values that the loss or sparse updates exclude.
void check_loss(const RecommendationRecipe& recipe, bool has_features) {
  if (recipe.recommendation.sparse_updates)
    if (const std::string_view missing = missing_for_sparse_updates(recipe, has_features); !missing.empty())
      fail("training: sparse_updates requires {}", missing);
  if (recipe.recommendation.loss == ItemLoss::softmax) return;
  const std::string_view loss = name_of(recipe.recommendation.loss);
  if (recipe.model.output_bias) fail("training: output_bias requires loss = softmax (loss is {})", loss);
  const auto require_softmax = [&](std::string_view name, double value) {
    if (value > 0) fail("training: {} {} requires loss = softmax (loss is {})", name, value, loss);
  };
  require_softmax("label_smoothing", recipe.training.label_smoothing);
  require_softmax("r_drop", recipe.training.r_drop);
}

// Checks values that depend on each other, and each value.
void RecommendationData::check(const RecommendationRecipe& given, const RecommendationFiles& files) {
  qkv::check(given.recommendation);
  if (files.features.empty() && !files.feature_columns.empty())
    fail("training: feature_columns requires a table of features");
  if (given.recommendation.holdout > 1 && given.recommendation.split != SplitRule::leave_one_out)
    fail("training: holdout {} requires split = leave_one_out (split is {})", given.recommendation.holdout,
         name_of(given.recommendation.split));
  if (given.training.selection != Selection::metric)
    fail("training: selection must be metric (is loss): recommenders have no validation loss");
  if (given.model.output_softcap != 0)
    fail("training: output_softcap must be 0 in a recommender (is {})", given.model.output_softcap);
  if (!given.training.freeze.empty() || given.training.lora_rank > 0)
    fail("training: freeze and lora_rank are for translators and language models");
  if (!given.fit) check_loss(given, !files.features.empty());
}

RecommendationRecipe RecommendationData::saved_recipe(const RunDirectory& run) {
  check_resumable(run, RunKind::recommender);
  return {read_recipe(run), read_recommendation(run)};
}

RecommendationData::RecommendationData(const TrainingSession& session, const RecommendationRecipe& given,
                                       const RecommendationFiles& files)
    : session_(session), files_(files), time_gaps_(given.recommendation.time_gaps) {
  if (session.resumed) expect_started_from(session.run, files.init);
  read_log(given);
  read_features();
}

// The log; its first items are those of the resumed run or of the initial run.
void RecommendationData::read_log(const RecommendationRecipe& given) {
  const RecommendationConfig& config = given.recommendation;
  const RecommendationConfig usual = recommendation_preset("auto").recommendation;
  const bool is_free = given.fit && !given.given.contains("min_events") && !given.given.contains("split") &&
                       config.min_events == usual.min_events && config.split == usual.split &&
                       config.holdout == usual.holdout;
  ReadReport report;
  auto& [log, sha256] = run_.log;
  log = read_interactions(files_.data,
                          {files_.columns, config.min_events, config.core, is_free, files_.separator,
                           files_.time_format, files_.skip_bad_lines},
                          report);
  few_events_ = is_free && report.min_events < usual.min_events;
  sha256 = report.sha256;
  if (time_gaps_ && !report.has_times)
    fail("training: time_gaps requires a log with a time in each line ({} has none)", files_.data.front());
  if (session_.resumed) {
    const SavedInteractions saved = read_run<RecommenderRun>(session_.run).log;
    log = with_first_items(std::move(log), saved.data.items);
    if (saved.sha256 != sha256 || saved.data != log)
      fail("{}: was trained on different data; use the same data or another directory", session_.run.root());
  } else if (!files_.init.empty()) {
    init_ = load_run<RecommenderRun>(files_.init);
    log = with_first_items(std::move(log), init_->log.data.items);
  }
  for (const std::string& line : report.lines()) session_.report(line);
}

// The table of features, if there is one. Features that the resumed run or the initial run has keep their ids.
void RecommendationData::read_features() {
  const std::string known_path = session_.resumed ? session_.run.features() : RunDirectory(files_.init).features();
  std::vector<std::string> known;
  if (std::filesystem::exists(known_path)) known = read_names(known_path, "feature");
  if (!files_.features.empty()) {
    std::string report;
    features_ = read_item_features(files_.features, files_.feature_columns, run_.log.data.items, known, report);
    session_.report(report);
  }
  if (session_.resumed && features_.names != known)
    fail("{}: was started with {} item features, {} given now; use the same table or another directory",
         session_.run.root(), known.size(),
         features_.count() == std::ssize(known) ? "different ones are" : fmt::format("{} are", features_.count()));
}

// Identifies log and features in saved states.
std::string RecommendationData::fingerprint() const {
  if (features_.count() == 0) return run_.log.sha256;
  const auto bytes = [](const auto& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  return fmt::format("{} {:016x}", run_.log.sha256,
                     hash_mix(hash_bytes(bytes(features_.ids)), hash_bytes(bytes(features_.offsets))));
}

void RecommendationData::set_sizes(RecommendationRecipe& recipe) const {
  if (few_events_) {
    recipe.recommendation.min_events = 2, recipe.recommendation.split = SplitRule::users;
    session_.report("most users have two events: chosen min_events 2, split users");
  }
  recipe.items = {features_.count(), time_gaps_ ? kGapBuckets : 0};
  if (recipe.fit) {
    if (init_) recipe.model.tied_output = init_->config.tied_output;
    const Split split = split_of(recipe.recommendation, run_.log.data);
    LogShape shape = shape_of(run_.log.data, split);
    const ModelConfig& model = init_ ? init_->config : fit_to_log(recipe, shape).recipe.model;
    shape = shape_of(run_.log.data, split, model.max_length);
    FittedRecipe fitted = fit_to_log(recipe, shape);
    if (init_) {
      RecommendationRecipe started = fitted.recipe;
      started.model = init_->config;
      started.model.dropout = fitted.recipe.model.dropout;
      fitted.recipe = with_saved(recipe, started);
    }
    session_.report(shape.line());
    if (!fitted.chosen.empty()) session_.report(fitted.line());
    recipe = std::move(fitted.recipe);
    check_loss(recipe, features_.count() > 0);
  }
  ModelConfig& model = recipe.model;
  model.source_vocab = model.encoder_layers = 0;
  model.shared_embeddings = false;
  model.target_vocab = run_.log.data.item_count();
}

void RecommendationData::set_limits(RecommendationRecipe& recipe) const {
  if (init_)
    if (const std::string line = check_held_out(files_.init, *init_, recipe.recommendation, run_.log.data);
        !line.empty())
      session_.report(line);
  TrainingConfig& training = recipe.training;
  const int64_t count = batches(recipe);
  set_cosine_end(training, count);
  const int64_t steps = std::max<int64_t>(1, count / training.accumulate / training.shards);
  if (training.eval_every == 0) training.eval_every = recipe.fit ? fitting_interval(steps) : steps;
}

std::unique_ptr<Task> RecommendationData::make_task(const RecommendationRecipe& recipe) const {
  return std::make_unique<RecommendationTask>(recipe, run_.log.data, fingerprint(), features_);
}

void RecommendationData::create_run(const RunDirectory& run, const RecommendationRecipe& recipe) {
  run_.config = recipe.model;
  run_.items = recipe.items;
  run_.recommendation = recipe.recommendation;
  qkv::create_run(run, run_, [&](const RunDirectory& partial) {
    make_directory(partial.checkpoints());
    write_fields(partial.training(), recipe.training);
    if (features_.count() > 0) {
      write_file_atomic(partial.features(), pieces_to_json(features_.names));
      write_file_atomic(partial.feature_columns(), pieces_to_json(features_.columns));
    }
    if (init_) write_start(partial, recipe);
  });
}

// The weights of the initial run, with random ones for what it does not have.
void RecommendationData::write_start(const RunDirectory& run, const RecommendationRecipe& recipe) const {
  Transformer<float> model(recipe.model, recipe.items, recipe.head);
  model.parameters().initialize(static_cast<uint64_t>(recipe.training.seed), recipe.training.initial_deviation);
  start_from(files_.init, *init_, recipe, model.parameters());
  if (const Parameter<float>* G = model.feature_table()) {
    const std::vector<float> zeros(to_size(G->size()));
    FeatureSums(features_).add_change(G->matrix(), {zeros.data(), G->shape[0], G->shape[1]},
                                      init_->log.data.item_count(), model.item_table().matrix());
  }
  save_weights(run.start(), model.parameters(), model.parameters().values());
}

}  // namespace

bool train_recommender(const RecommendationFiles& files, const RecommendationRecipe& recipe, const std::string& out,
                       const TrainingObserver& observer, const RankOptions& ranks) {
  std::vector<std::string> texts = files.data;
  if (!files.features.empty()) texts.push_back(files.features);
  return train_on_ranks(
      ranks, out, observer, texts, [&](const std::string& run, const TrainingObserver& own, Ranks* all) {
        if (recipe.fit && std::filesystem::exists(run))
          return train_on<RecommendationData>(
              run, own, all, with_saved(recipe, RecommendationData::saved_recipe(RunDirectory(run))), files);
        return train_on<RecommendationData>(run, own, all, recipe, files);
      });
}

}  // namespace qkv
