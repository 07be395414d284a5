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
#include "decode/encoder/text_ids.h"
#include "io/atomic_file.h"
#include "io/runs/adapter.h"
#include "io/runs/run.h"
#include "io/runs/text_head_file.h"
#include "qkv/embedder_training.h"
#include "train/initial_run.h"
#include "train/loop/session.h"
#include "train/loop/train_on_files.h"
#include "train/optimizer/trained_parts.h"
#include "train/tasks/embedding_task.h"
#include "train/text_start.h"

namespace qkv {
namespace {

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

// Returns the last column as an error names it.
std::string last_column(const ExampleFile& file) {
  return file.names().empty() ? fmt::format("column {}", file.fields()) : excerpt(file.names().back());
}

// Returns the columns of training rows. Throws Error unless they are those that the loss needs.
RowColumns train_columns(const ExampleFile& file, VectorLoss loss) {
  RowColumns found = find_columns(file);
  if (!reads_score(loss) && found.has_score)
    fail("{}: loss {} reads no score, but {}: choose the others (columns)", file.path(), name_of(loss),
         names_score(file) ? "the last column is " + last_column(file) : last_column(file) + " has numbers");
  if (reads_score(loss) && !found.has_score && file.fields() >= 3) found = {file.fields() - 1, true};
  const bool is_own_positive = loss == VectorLoss::info_nce && found.texts == 1 && !found.has_score;
  if (!is_own_positive && !allows(loss, found))
    fail("{}: loss {} requires columns of {} (has {})", file.path(), name_of(loss), needed(loss), described(found));
  return found;
}

// Returns the columns of dev rows, which may be others than those of training. is_own: whether they are in a file of
// their own. has_teacher: whether a teacher has vectors for them.
RowColumns dev_columns(const ExampleFile& file, const ExampleFile& train, const RowColumns& trained, bool has_teacher,
                       bool is_own) {
  const bool is_same = file.fields() == train.fields() && !names_score(file);
  const RowColumns found = is_same ? trained : find_columns(file);
  const bool has_measure = found.has_score ? found.texts == 2 || found.texts == 3 : found.texts >= 2;
  if (!has_measure && !(has_teacher && !found.has_score))
    fail("{}: evaluation requires columns of two texts, or of two texts and a score{} (has {})", file.path(),
         is_own ? "" : ": set dev to such a file", described(found));
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
  void check_rows(const EmbedderRecipe& recipe) const;
  int64_t width(const TextHeadConfig& head) const;
  void check_teacher(const EmbedderRecipe& recipe) const;
  void check_dev(double share) const;
  TokenCount count_tokens(const std::string& text, const std::string& where) const;

  const TrainingSession& session_;
  const EmbedderFiles& files_;
  bool resumed_;
  TextStart start_;  // the run that is resumed, or the initial one
  VectorLoss kind_;
  std::optional<TextRows> train_, dev_;
  RowScan scan_ = {};                     // of the training rows
  int64_t max_length_ = 0, longest_ = 0;  // tokens of a text
  std::optional<Teacher> teacher_;
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
    fail("training: loss distill requires teacher, a run that embeds texts or a file of vectors");
  if (!files.teacher.empty() && !is_free && loss != VectorLoss::distill)
    fail("training: teacher requires loss distill (is {})", name_of(loss));
  if (config.teacher_first && files.teacher.empty()) fail("training: teacher_first requires teacher");
  check_columns(files.columns, "columns");
  check_columns(files.dev_columns, "dev_columns");
}

EmbedderRecipe EmbedderData::saved_recipe(const RunDirectory& run) {
  check_resumable(run, RunKind::encoder);
  if (!std::filesystem::exists(run.embedder()))
    fail("{}: exists but has no embedder.json; expected a run that training an embedder started, or a new directory",
         run.root());
  return {read_recipe(run), read_fields<EmbedderConfig>(run, run.embedder())};
}

EmbedderData::EmbedderData(const TrainingSession& session, const EmbedderRecipe& given, const EmbedderFiles& files)
    : session_(session), files_(files), resumed_(session.resumed) {
  if (!resumed_ && files.init.empty()) fail("training: init must name the run that training starts from");
  if (resumed_) expect_started_from(session.run, files.init);
  start_ = read_text_start(resumed_ ? session.run.root() : files.init);
  expect_same_shape(resumed_ ? session.run.root() : files.init, start_.run.config, given.model);
  const TextEdges& edges = start_.run.edges;
  max_length_ =
      text_length(start_.run, given.embedder.max_length, std::ssize(edges.before) + std::ssize(edges.after) + 1);
  if (!files.teacher.empty()) teacher_.emplace(files.teacher);
  read_rows(given.embedder);
  scan_rows(given.embedder);
  if (!resumed_) check_dev(given.embedder.dev_share);
  if (!resumed_) session.report(fmt::format("starting from {}", files.init));
}

void EmbedderData::read_rows(const EmbedderConfig& config) {
  const auto train = std::make_shared<const ExampleFile>(files_.train, files_.columns);
  session_.report(describe_columns(*train));
  kind_ = loss_of(config, files_, *train);
  const RowColumns columns = train_columns(*train, kind_);
  const int64_t rows = train->rows();
  if (files_.dev.empty()) {
    const RowColumns of_dev = dev_columns(*train, *train, columns, teacher_.has_value(), false);
    std::vector<int64_t> aside = chosen_for_dev(files_.train, rows, config.dev_share);
    train_.emplace(train, numbers_without(rows, aside), columns);
    dev_.emplace(train, std::move(aside), of_dev);
    return;
  }
  const auto dev =
      std::make_shared<const ExampleFile>(files_.dev, files_.dev_columns.empty() ? files_.columns : files_.dev_columns);
  session_.report(describe_columns(*dev));
  train_.emplace(train, numbers_without(rows, {}), columns);
  dev_.emplace(dev, numbers_without(dev->rows(), {}),
               dev_columns(*dev, *train, columns, teacher_ && !teacher_->is_file(), true));
}

TokenCount EmbedderData::count_tokens(const std::string& text, const std::string& where) const {
  const EmbedderTokens tokens = between_edges(start_.run.edges, inner_ids(start_.run, text, where), max_length_);
  if (tokens.ids.empty()) fail("{}: a text has no tokens", where);
  return {std::ssize(tokens.ids), tokens.all > std::ssize(tokens.ids)};
}

void EmbedderData::scan_rows(const EmbedderConfig& config) {
  std::optional<TextRows::ScoreRange> range;
  if (config.score_min != 0 || config.score_max != 0) range = {config.score_min, config.score_max};
  const auto count = [this](const std::string& text, const std::string& where) { return count_tokens(text, where); };
  scan_ = train_->scan(range, kind_ == VectorLoss::info_nce, count);
  const RowScan dev = dev_->scan({}, false, count);
  longest_ = std::max(scan_.longest, dev.longest);
  if (scan_.cut > 0)
    session_.report(fmt::format("{} of {} texts of {} are truncated to {} tokens", scan_.cut,
                                train_->size() * train_->columns().texts, files_.train, max_length_));
  if (kind_ == VectorLoss::cosine && !range && scan_.least == scan_.most)
    fail("{}: all scores are {:g}; set score_min and score_max", files_.train, scan_.least);
  if (dev_->columns().has_score && dev.least == dev.most)
    fail("{}: the rows for evaluation must have different scores (all are {:g})", dev_->path(), dev.least);
}

// Throws Error if the initial run was trained on the rows for evaluation.
void EmbedderData::check_dev(double share) const {
  const RunDirectory init(files_.init);
  if (!std::filesystem::exists(init.embedder())) return;
  const auto trained_without = [&](double aside) {
    const int64_t rows = train_->file().rows();
    const auto chosen = aside > 0 ? chosen_for_dev(files_.train, rows, aside) : std::vector<int64_t>();
    return rows_fingerprint(train_->file(), numbers_without(rows, chosen));
  };
  expect_untrained_rows(files_.init, {files_.dev, files_.train, dev_->fingerprint(), share,
                                      read_fields<EmbedderConfig>(init, init.embedder()).dev_share, trained_without});
}

int64_t EmbedderData::width(const TextHeadConfig& head) const {
  return head.dense.empty() ? start_.run.config.d_model : head.dense.back().out;
}

void EmbedderData::check_teacher(const EmbedderRecipe& recipe) const {
  if (!teacher_) return;
  const TextHeadConfig& head = recipe.head;
  const int64_t rows = train_->file().rows(), texts = rows * train_->columns().texts;
  const bool has_firsts = recipe.embedder.teacher_first && teacher_->vectors() == rows;
  if (teacher_->is_file() && teacher_->vectors() != texts && !has_firsts)
    fail("{}: must have {} vectors, one for each text of {} (has {})", files_.teacher, texts, files_.train,
         teacher_->vectors());
  if (teacher_->width() != width(head))
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
  if (start_.run.dense) head.dense = start_.run.dense->layers().shapes();
  head.temperature = config.learn_temperature;
  head.apart = recipe.training.lora_rank > 0;
  if (config.dense > 0 && !resumed_) head.dense.push_back({config.dense_activation, width(head), config.dense, true});
  run.dense.clear();
  for (const DenseShape& layer : head.dense) run.dense.emplace_back(name_of(layer.activation));
  recipe.head = head;
}

// Throws Error if the loss could not change, or not be small.
void EmbedderData::check_rows(const EmbedderRecipe& recipe) const {
  const EmbedderConfig& config = recipe.embedder;
  const int64_t texts = train_->columns().texts;
  if (kind_ == VectorLoss::info_nce && texts < 3 && std::min(config.examples, train_->size()) < 2)
    fail(
        "{}: loss info_nce without negatives requires batches of two rows or more (examples is {}, {} rows to train "
        "on)",
        files_.train, config.examples, train_->size());
  const DropoutConfig& dropout = recipe.model.dropout;
  if (kind_ == VectorLoss::info_nce && texts == 1 && dropout == DropoutConfig{0, 0, 0})
    fail("{}: one column of texts requires dropout, by which the two vectors of a text differ (dropout is 0)",
         files_.train);
  const bool is_cosine = config.similarity == Similarity::cosine || config.normalize == NormalizeChoice::on;
  if (const double margin = std::max(std::abs(scan_.least), std::abs(scan_.most));
      kind_ == VectorLoss::margin_mse && is_cosine && margin > 2)
    fail("{}: margins of cosines must be between -2 and 2 (is {:g}); set similarity to dot and normalize to off",
         files_.train, std::abs(scan_.least) > 2 ? scan_.least : scan_.most);
  if (config.similarity == Similarity::dot && config.normalize == NormalizeChoice::on && !resumed_)
    session_.report("similarity dot is that of normalized vectors, their cosine (normalize is on)");
}

void EmbedderData::set_sizes(EmbedderRecipe& recipe) {
  EmbedderConfig& config = recipe.embedder;
  set_head(recipe);
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
  check_teacher(recipe);
  check_rows(recipe);
}

void EmbedderData::set_limits(EmbedderRecipe& recipe) const {
  TrainingConfig& training = recipe.training;
  set_cosine_end(training, batches(recipe));
  if (recipe.fit && !resumed_ && !recipe.given.contains("warmup_steps")) set_row_warmup(training);
}

std::unique_ptr<Task> EmbedderData::make_task(const EmbedderRecipe& recipe) const {
  return std::make_unique<EmbeddingTask>(
      recipe, EmbeddingData{start_.run, *train_, *dev_, teacher_ ? &*teacher_ : nullptr,
                            teacher_ ? teacher_->hash() : "", width(recipe.head), max_length_, longest_});
}

void EmbedderData::create_run(const RunDirectory& run, const EmbedderRecipe& recipe) const {
  const EncoderRun parts{recipe.model, start_.run.embedding, start_.run.codec, start_.run.edges};
  qkv::create_run(run, parts, [&](const RunDirectory& partial) {
    make_directory(partial.checkpoints());
    write_fields(partial.training(), recipe.training);
    write_fields(partial.embedder(), recipe.embedder);
    const auto start = start_model(files_.init, recipe, true);
    if (const Parameter<float>* s = start->text_head()->temperature())
      *s->value = static_cast<float>(-std::log(recipe.embedder.temperature) / kTemperatureRate);
    write_text_start(files_.init, recipe, *start, partial);
  });
}

}  // namespace

EmbedderRecipe embedder_fine_tuning() {
  EmbedderRecipe recipe;
  TrainingConfig& training = recipe.training;
  set_row_fine_tuning(training);
  training.max_epochs = 1;
  training.eval_every = training.save_every = 200;
  return recipe;
}

EmbedderRecipe embedder_fine_tuning(const std::string& run) {
  EmbedderRecipe recipe = embedder_fine_tuning();
  recipe.model = read_text_start(run).run.config;
  return recipe;
}

bool train_embedder(const EmbedderFiles& files, const EmbedderRecipe& recipe, const std::string& out,
                    const TrainingObserver& observer, const RankOptions& ranks) {
  return train_on_rows<EmbedderData>(files, recipe, out, observer, ranks);
}

}  // namespace qkv
