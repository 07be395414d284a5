// Training an embedder: rows of texts, the run that it starts from, and its run directory.
#include "qkv/embedder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/runs/run.h"
#include "io/runs/text_head_file.h"
#include "qkv/embedder_training.h"
#include "train/initial_run.h"
#include "train/loop/session.h"
#include "train/optimizer/trained_parts.h"
#include "train/tasks/embedding_task.h"
#include "train/text_start.h"

namespace qkv {
namespace {

constexpr int64_t kMostDevRows = 10'000;  // that are set aside
constexpr int64_t kBytesOfToken = 4;      // a bound: text may become longer when it is normalized
constexpr double kWarmup = 0.1;           // share of the steps

std::string described(const RowColumns& columns) {
  return fmt::format("{} text{}{}", columns.texts, columns.texts == 1 ? "" : "s",
                     columns.has_score ? " and a score" : "");
}

bool reads_score(VectorLoss loss) {
  return loss == VectorLoss::cosent || loss == VectorLoss::cosine || loss == VectorLoss::margin_mse;
}

std::string_view needed(VectorLoss loss) {
  if (loss == VectorLoss::margin_mse) return "three texts and a score";
  return reads_score(loss) ? "two texts and a score" : "texts";
}

VectorLoss loss_of(const EmbedderConfig& config, const EmbedderFiles& files, const ExampleFile& train) {
  if (config.loss != VectorLoss::automatic) return config.loss;
  return files.teacher.empty() ? usual_loss(find_columns(train)) : VectorLoss::distill;
}

// Returns the columns of training rows. Throws Error unless they are those that the loss needs.
RowColumns train_columns(const ExampleFile& file, VectorLoss loss) {
  RowColumns found = find_columns(file);
  if (!reads_score(loss) && found.has_score) {
    if (names_score(file))
      fail("{}: loss {} reads no score, but the last column is {}: choose the others (columns)", file.path(),
           name_of(loss), excerpt(file.names().back()));
    found = {file.fields(), false};
  }
  if (reads_score(loss) && !found.has_score && file.fields() >= 3) found = {file.fields() - 1, true};
  const bool finds_itself = loss == VectorLoss::info_nce && found.texts == 1 && !found.has_score;
  if (!finds_itself && !allows(loss, found))
    fail("{}: loss {} requires columns of {} (has {})", file.path(), name_of(loss), needed(loss), described(found));
  return found;
}

// Returns the columns of dev rows, which may be others than those of training.
RowColumns dev_columns(const ExampleFile& file, const ExampleFile& train, const RowColumns& trained, VectorLoss loss) {
  const bool is_same = file.fields() == train.fields() && !names_score(file);
  const RowColumns found = is_same ? trained : find_columns(file);
  const bool has_measure = found.has_score ? found.texts == 2 || found.texts == 3 : found.texts >= 2;
  if (!has_measure && !(loss == VectorLoss::distill && !found.has_score))
    fail("{}: evaluation requires columns of two texts, or of two texts and a score, in the dev file (has {})",
         file.path(), described(found));
  return found;
}

class EmbedderData {
 public:
  static constexpr bool kCountsBatches = true, kFitsLimits = true;

  static void check(const EmbedderRecipe& given, const EmbedderFiles& files);
  static EmbedderRecipe saved_recipe(const RunDirectory& run);

  EmbedderData(const TrainingSession& session, const EmbedderRecipe& given, const EmbedderFiles& files);

  void set_sizes(EmbedderRecipe& recipe);
  void set_limits(EmbedderRecipe& recipe) const;
  int64_t batches(const EmbedderRecipe& recipe) const { return EmbeddingTask::batches(recipe, *train_); }
  std::unique_ptr<Task> make_task(const EmbedderRecipe& recipe) const;
  void create_run(const RunDirectory& run, const EmbedderRecipe& recipe) const;

 private:
  void read_rows(const EmbedderConfig& config);
  void scan_rows(const EmbedderConfig& config);
  void set_head(EmbedderRecipe& recipe);
  void keep_base(EmbedderRecipe& recipe) const;
  int64_t width(const TextHeadConfig& head) const;
  void check_teacher(const TextHeadConfig& head) const;
  void check_dev() const;

  const EmbedderFiles& files_;
  bool resumed_;
  TextStart start_;  // the run that is resumed, or the initial one
  VectorLoss kind_;
  std::optional<TextRows> train_, dev_;
  RowScan scan_ = {};  // of the training rows
  int64_t longest_ = 0;
  std::unique_ptr<const Embedder> teacher_;
};

void EmbedderData::check(const EmbedderRecipe& given, const EmbedderFiles& files) {
  const EmbedderConfig& config = given.embedder;
  const TrainingConfig& training = given.training;
  qkv::check(config);
  if (files.train.empty()) fail("training: train must name a file");
  if (training.device != ComputeDevice::cpu)
    fail("training: device must be cpu for an embedder (is {})", name_of(training.device));
  for (const auto& [name, value] :
       {std::pair{"label_smoothing", training.label_smoothing}, std::pair{"r_drop", training.r_drop}})
    if (value != 0) fail("training: {} must be 0 for an embedder (is {:g})", name, value);
  check_fine_tuning(training, files.init);
  const VectorLoss loss = config.loss;
  const bool is_free = loss == VectorLoss::automatic;
  if (loss == VectorLoss::distill && files.teacher.empty())
    fail("training: loss distill requires teacher, a run that embeds texts");
  if (!files.teacher.empty() && !is_free && loss != VectorLoss::distill)
    fail("training: teacher requires loss distill (is {})", name_of(loss));
  if (config.teacher_first && files.teacher.empty()) fail("training: teacher_first requires teacher");
}

EmbedderRecipe EmbedderData::saved_recipe(const RunDirectory& run) {
  check_resumable(run, RunKind::encoder);
  if (!std::filesystem::exists(run.embedder()))
    fail("{}: exists but has no embedder.json; expected a run that training an embedder started, or a new directory",
         run.root());
  return {read_recipe(run), read_fields<EmbedderConfig>(run, run.embedder())};
}

EmbedderData::EmbedderData(const TrainingSession& session, const EmbedderRecipe& given, const EmbedderFiles& files)
    : files_(files), resumed_(session.resumed) {
  if (!resumed_ && files.init.empty()) fail("training: init must name the run that training starts from");
  if (resumed_) expect_started_from(session.run, files.init);
  start_ = read_text_start(resumed_ ? session.run.root() : files.init);
  expect_same_shape(resumed_ ? session.run.root() : files.init, start_.run.config, given.model);
  read_rows(given.embedder);
  scan_rows(given.embedder);
  if (!resumed_) check_dev();
  if (kind_ == VectorLoss::distill) teacher_ = std::make_unique<const Embedder>(files.teacher);
  if (!resumed_) session.report(fmt::format("starting from {}", files.init));
}

void EmbedderData::read_rows(const EmbedderConfig& config) {
  const auto train = std::make_shared<const ExampleFile>(files_.train, files_.columns);
  kind_ = loss_of(config, files_, *train);
  const RowColumns columns = train_columns(*train, kind_);
  const int64_t rows = train->rows();
  if (!files_.dev.empty()) {
    const auto dev = std::make_shared<const ExampleFile>(
        files_.dev, files_.dev_columns.empty() ? files_.columns : files_.dev_columns);
    train_.emplace(train, 0, rows, columns);
    dev_.emplace(dev, 0, dev->rows(), dev_columns(*dev, *train, columns, kind_));
    return;
  }
  const auto share = std::llround(config.dev_share * static_cast<double>(rows));
  const int64_t aside = std::clamp<int64_t>(share, 1, kMostDevRows);
  if (aside >= rows) fail("{}: is too short to set aside {} of it (dev_share)", files_.train, config.dev_share);
  train_.emplace(train, 0, rows - aside, columns);
  dev_.emplace(train, rows - aside, rows, dev_columns(*train, *train, columns, kind_));
}

void EmbedderData::scan_rows(const EmbedderConfig& config) {
  std::optional<TextRows::ScoreRange> range;
  if (config.score_min != 0 || config.score_max != 0) range = {config.score_min, config.score_max};
  scan_ = train_->scan(range);
  const int64_t longest = std::max(scan_.longest, dev_->scan({}).longest);
  longest_ = kBytesOfToken * (longest + std::ssize(start_.run.embedding.prefix)) + std::ssize(start_.run.edges.before) +
             std::ssize(start_.run.edges.after);
  if (kind_ == VectorLoss::cosine && !range && scan_.least == scan_.most)
    fail("{}: all scores are {:g}; set score_min and score_max", files_.train, scan_.least);
}

// Throws Error if the initial run was trained on the dev rows.
void EmbedderData::check_dev() const {
  if (!files_.dev.empty() && dev_->fingerprint() == trained_text(files_.init))
    fail("{}: was trained on {}, so that scores on it would be too good; use another dev file", files_.init,
         files_.dev);
}

int64_t EmbedderData::width(const TextHeadConfig& head) const {
  return head.dense.empty() ? start_.run.config.d_model : head.dense.back().out;
}

void EmbedderData::check_teacher(const TextHeadConfig& head) const {
  if (teacher_ && teacher_->width() != width(head))
    fail("{}: has vectors of {} components, the run that is trained of {}; set dense to {}", files_.teacher,
         teacher_->width(), width(head), teacher_->width());
}

// A run that is resumed has the new linear layer already.
void EmbedderData::set_head(EmbedderRecipe& recipe) {
  EmbedderConfig& config = recipe.embedder;
  EmbeddingConfig& run = start_.run.embedding;
  run.pooling = pooling_of(config.pooling, run.pooling);
  if (config.normalize != NormalizeChoice::same) run.normalize = config.normalize == NormalizeChoice::on;
  config.pooling = choice_of(run.pooling);
  config.normalize = run.normalize ? NormalizeChoice::on : NormalizeChoice::off;
  if (config.max_length > 0) run.max_length = config.max_length;
  TextHeadConfig head;
  head.kind = TextHeadConfig::Kind::vectors;
  head.pooling = run.pooling;
  head.dense = start_.dense;
  head.temperature = config.learn_temperature;
  if (config.dense > 0 && !resumed_) head.dense.push_back({config.dense_activation, width(head), config.dense, true});
  run.dense.clear();
  for (const DenseShape& layer : head.dense) run.dense.emplace_back(name_of(layer.activation));
  recipe.head = head;
}

// An adapter changes the whole model of the initial run, and nothing else.
void EmbedderData::keep_base(EmbedderRecipe& recipe) const {
  if (!recipe.head.dense.empty() || recipe.head.temperature)
    fail("training: lora_rank must be 0 with {} (is {})",
         recipe.head.temperature ? "learn_temperature" : "linear layers after the pooling", recipe.training.lora_rank);
  const DropoutConfig dropout = recipe.model.dropout;
  recipe.model = start_.whole;
  recipe.model.dropout = dropout;
}

void EmbedderData::set_sizes(EmbedderRecipe& recipe) {
  EmbedderConfig& config = recipe.embedder;
  set_head(recipe);
  if (recipe.training.lora_rank > 0) keep_base(recipe);
  config.loss = kind_;
  if (kind_ == VectorLoss::cosine && config.score_min == 0 && config.score_max == 0) {
    config.score_min = scan_.least;
    config.score_max = scan_.most;
  }
  const bool has_temperature = kind_ == VectorLoss::info_nce || kind_ == VectorLoss::cosent;
  if (config.learn_temperature && !has_temperature)
    fail("training: learn_temperature requires loss info_nce or cosent (is {})", name_of(kind_));
  if (config.symmetric && kind_ != VectorLoss::info_nce)
    fail("training: symmetric requires loss info_nce (is {})", name_of(kind_));
  for (const int64_t components : config.matryoshka)
    if (components > width(recipe.head))
      fail("training: matryoshka must be at most {}, the components of a vector (is {})", width(recipe.head),
           components);
  check_teacher(recipe.head);
}

void EmbedderData::set_limits(EmbedderRecipe& recipe) const {
  TrainingConfig& training = recipe.training;
  set_cosine_end(training, batches(recipe));
  if (recipe.fit && !resumed_ && !recipe.given.contains("warmup_steps") && training.max_steps > 0)
    training.warmup_steps = std::max<int64_t>(1, std::llround(kWarmup * static_cast<double>(training.max_steps)));
}

std::unique_ptr<Task> EmbedderData::make_task(const EmbedderRecipe& recipe) const {
  const TextEdges& edges = start_.run.edges;
  const int64_t least = std::ssize(edges.before) + std::ssize(edges.after) + 1;
  const int64_t length = text_length(start_.run, recipe.embedder.max_length, least);
  return std::make_unique<EmbeddingTask>(recipe, EmbeddingData{start_.run, *train_, *dev_, teacher_.get(),
                                                               width(recipe.head), length, std::min(longest_, length)});
}

void EmbedderData::create_run(const RunDirectory& run, const EmbedderRecipe& recipe) const {
  const EncoderRun parts{recipe.model, start_.run.embedding, start_.run.codec, start_.run.edges};
  qkv::create_run(run, parts, [&](const RunDirectory& partial) {
    make_directory(partial.checkpoints());
    write_fields(partial.training(), recipe.training);
    write_fields(partial.embedder(), recipe.embedder);
    if (recipe.training.lora_rank > 0)
      return write_adapter(partial, make_adapter(recipe.training, recipe.model, files_.init));
    const auto start = start_model(files_.init, recipe, true);
    if (const Parameter<float>* s = start->text_head()->temperature())
      *s->value = static_cast<float>(-std::log(recipe.embedder.temperature));
    save_weights(partial.start(), start->parameters(), start->parameters().values());
    write_text_head(partial, *start);
  });
}

}  // namespace

EmbedderRecipe embedder_fine_tuning() {
  EmbedderRecipe recipe;
  TrainingConfig& training = recipe.training;
  set_text_fine_tuning(training);
  training.learning_rate = 2e-5;
  training.schedule = Schedule::cosine;
  training.beta2 = 0.999;
  training.max_epochs = 1;
  training.eval_every = training.save_every = 200;
  training.patience = 0;
  training.selection = Selection::metric;
  return recipe;
}

EmbedderRecipe embedder_fine_tuning(const std::string& run) {
  EmbedderRecipe recipe = embedder_fine_tuning();
  recipe.model = read_text_start(run).run.config;
  return recipe;
}

bool train_embedder(const EmbedderFiles& files, const EmbedderRecipe& recipe, const std::string& out,
                    const TrainingObserver& observer, const RankOptions& ranks) {
  EmbedderRecipe given = recipe;
  if (given.training.device == ComputeDevice::automatic) given.training.device = ComputeDevice::cpu;
  std::vector<std::string> texts = {files.train};
  if (!files.dev.empty()) texts.push_back(files.dev);
  return train_on_ranks(ranks, out, observer, texts,
                        [&](const std::string& run, const TrainingObserver& own, Ranks* all) {
                          return train_on<EmbedderData>(run, own, all, given, files);
                        });
}

}  // namespace qkv
