// Training a classifier or a cross-encoder: labelled texts, the run that it starts from, and its run directory.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/examples/example_file.h"
#include "data/examples/shuffled_rows.h"
#include "decode/encoder/pairs.h"
#include "io/atomic_file.h"
#include "io/runs/run.h"
#include "io/runs/text_head_file.h"
#include "qkv/classifier_training.h"
#include "train/initial_run.h"
#include "train/loop/session.h"
#include "train/optimizer/trained_parts.h"
#include "train/tasks/classification_task.h"
#include "train/text_start.h"

namespace qkv {
namespace {

constexpr double kWarmupShare = 0.1;  // of the steps
constexpr size_t kListedLabels = 10;
constexpr const char* kNumberLabel = "score";  // the name of a number

// Returns a number of end tokens between the texts of a pair that suits an encoder whose run has none. Models with
// types have one, as BERT; others with these tokens have two, as RoBERTa.
int64_t usual_separators(const EncoderRun& run) {
  return run.config.token_types <= 1 && run.embedding.start == "<s>" && run.embedding.end == "</s>" ? 2 : 1;
}

// Returns "a (10), b (7)".
std::string describe(const LabelCounts::Summary& found) {
  std::string text;
  for (size_t i = 0; i < std::min(found.labels.size(), kListedLabels); i++)
    text += fmt::format("{}{} ({})", i > 0 ? ", " : "", excerpt(found.labels[i]), found.rows[i]);
  return found.labels.size() > kListedLabels ? text + ", …" : text;
}

bool have_same_labels(std::vector<std::string> a, std::vector<std::string> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

class ClassifierData {
 public:
  static constexpr bool kCountsBatches = true, kFitsLimits = true;

  static void check(const ClassifierRecipe& given, const ClassifierFiles& files);
  static ClassifierRecipe saved_recipe(const RunDirectory& run);

  ClassifierData(const TrainingSession& session, const ClassifierRecipe& given, const ClassifierFiles& files);

  void set_sizes(ClassifierRecipe& recipe) const;
  void set_limits(ClassifierRecipe& recipe) const;
  int64_t batches(const ClassifierRecipe& recipe) const { return ClassificationTask::batches(recipe, train_); }
  std::unique_ptr<Task> make_task(const ClassifierRecipe& recipe) const;
  void create_run(const RunDirectory& run, const ClassifierRecipe& recipe) const;

 private:
  void read_train(const ClassifierRecipe& given);
  void choose_head(const ClassifierRecipe& given, const LabelCounts::Summary& found);
  void read_dev(const ClassifierRecipe& given, const LabelCounts::Summary& found);
  std::vector<int64_t> dev_units(double share, const std::vector<int64_t>& first_rows) const;
  LabelledPart rest_of(const std::vector<int64_t>& units) const;
  void check_untrained_dev(const ClassifierRecipe& given, const std::vector<int64_t>& first_rows) const;

  const TrainingSession& session_;
  const ClassifierFiles& files_;
  TextStart start_;
  ClassificationConfig classification_;
  bool keeps_head_ = false;
  std::optional<PairForm> form_;
  std::unique_ptr<ExampleFile> train_file_, dev_file_;  // the second is null without a file of its own
  LabelTable table_;
  LabelGoal goal_;
  std::unique_ptr<LabelledTexts> train_texts_, dev_texts_;  // likewise
  LabelledPart train_, dev_;
};

void ClassifierData::check(const ClassifierRecipe& given, const ClassifierFiles& files) {
  qkv::check(given.labels);
  if (files.train.empty()) fail("training: train must name a file");
  const TrainingConfig& training = given.training;
  if (training.device != ComputeDevice::cpu)
    fail("training: device must be cpu for a classifier (is {})", name_of(training.device));
  if (training.lora_rank != 0) fail("training: lora_rank must be 0 for a classifier (is {})", training.lora_rank);
  check_fine_tuning(training, files.init);
  if (training.r_drop != 0) fail("training: r_drop must be 0 for a classifier (is {})", training.r_drop);
  const LabelTrainingConfig& c = given.labels;
  const bool may_split = c.loss == LabelLoss::automatic || c.loss == LabelLoss::sigmoid;
  if (!c.label_separator.empty() && !may_split)
    fail("training: label_separator must be empty with loss {} (is {})", name_of(c.loss), excerpt(c.label_separator));
}

ClassifierRecipe ClassifierData::saved_recipe(const RunDirectory& run) {
  check_resumable(run, RunKind::classifier);
  return {read_recipe(run), read_fields<LabelTrainingConfig>(run, run.labels())};
}

ClassifierData::ClassifierData(const TrainingSession& session, const ClassifierRecipe& given,
                               const ClassifierFiles& files)
    : session_(session), files_(files) {
  if (!session.resumed && files.init.empty()) fail("training: init must name the run that training starts from");
  start_ = read_text_start(session.resumed ? session.run.root() : files.init);
  expect_same_shape(session.resumed ? session.run.root() : files.init, start_.run.config, given.model);
  if (!session.resumed)
    session.report(fmt::format("starting from {}: learning_rate {}, schedule {}", files.init,
                               given.training.learning_rate, name_of(given.training.schedule)));
  const int64_t separators = start_.classification ? start_.classification->separators : usual_separators(start_.run);
  form_.emplace(PairForm{start_.run, separators,
                         text_length(start_.run, given.labels.max_length, least_length(start_.run.edges))});
  read_train(given);
}

// Reads the rows for training, from which the labels follow, then those for evaluation.
void ClassifierData::read_train(const ClassifierRecipe& given) {
  train_file_ = std::make_unique<ExampleFile>(files_.train, files_.columns, ExampleArrays::last);
  const bool compares = compares_texts(given.labels.loss);
  LabelCounts counts(given.labels);
  const LabelledScan scan = scan_labelled(*train_file_, *form_, compares, [&](const ExampleRow& row, int64_t number) {
    counts.add(row.fields.back(), number, train_file_->place(row));
  });
  const LabelCounts::Summary found = counts.summary(files_.train);
  choose_head(given, found);
  std::vector<int64_t> rows;  // of the labels in the order of the logits
  for (const std::string& label : classification_.labels) {
    const auto place = std::ranges::find(found.labels, label);
    if (found.kind != LabelKind::number) rows.push_back(found.rows[to_size(place - found.labels.begin())]);
  }
  classification_.scores = score_function(found.loss);
  classification_.separators = form_->separators;
  table_ = LabelTable(found.kind, given.labels, classification_.labels);
  goal_ = {found.kind, found.loss,
           label_weights(given.labels, found.loss, classification_.labels, rows, train_file_->rows())};
  if (given.training.label_smoothing > 0 && found.loss != LabelLoss::softmax)
    fail("training: label_smoothing must be 0 with loss {} (is {})", name_of(found.loss),
         given.training.label_smoothing);
  train_texts_ = std::make_unique<LabelledTexts>(*train_file_, *form_, scan, table_, found.loss);
  if (compares && scan.longest_list < 2)
    fail("{}: must have several texts of one query in consecutive rows for loss {} (each row has another)",
         files_.train, name_of(found.loss));
  session_.report(fmt::format("{}: {} rows, {}", files_.train, train_file_->rows(),
                              found.kind == LabelKind::number
                                  ? fmt::format("numbers, loss {}", name_of(found.loss))
                                  : fmt::format("{} labels: {}", found.labels.size(), describe(found))));
  if (scan.cut > 0)
    session_.report(
        fmt::format("{} of {} rows are truncated to {} tokens", scan.cut, train_file_->rows(), form_->max_length));
  read_dev(given, found);
}

// Keeps the head of the run if it fits.
void ClassifierData::choose_head(const ClassifierRecipe& given, const LabelCounts::Summary& found) {
  const LabelTrainingConfig& config = given.labels;
  const std::optional<ClassificationConfig>& before = start_.classification;
  const bool is_number = found.kind == LabelKind::number;
  const std::vector<std::string> labels = is_number ? std::vector<std::string>{kNumberLabel} : found.labels;
  const bool fits = before && (is_number ? before->labels.size() == 1 : have_same_labels(before->labels, labels));
  if (session_.resumed) {
    if (!fits) fail("{}: was started with other labels than {} has", session_.run.root(), files_.train);
    classification_ = *before;
    return;
  }
  classification_.labels = fits ? before->labels : labels;
  classification_.pooling = pooling_of(config.pooling, before ? before->pooling : start_.run.embedding.pooling);
  classification_.activation = config.head_activation;
  keeps_head_ = fits && before->pooling == classification_.pooling && before->activation == classification_.activation;
  if (keeps_head_) classification_.dense_bias = before->dense_bias, classification_.norm = before->norm;
  session_.report(keeps_head_ ? fmt::format("the head of {} is kept", files_.init) : "the head is new");
}

void ClassifierData::read_dev(const ClassifierRecipe& given, const LabelCounts::Summary& found) {
  if (files_.dev.empty()) {
    dev_ = {train_texts_.get(), dev_units(given.labels.dev_share, found.first_rows)};
    train_ = rest_of(dev_.units);
  } else {
    dev_file_ = std::make_unique<ExampleFile>(files_.dev, files_.columns, ExampleArrays::last);
    if (dev_file_->fields() != train_file_->fields())
      fail("{}: must have {} columns as {} (has {})", files_.dev, train_file_->fields(), files_.train,
           dev_file_->fields());
    const LabelledTexts rows(*dev_file_, *form_, {}, table_, found.loss);
    LabelledScan scan = scan_labelled(*dev_file_, *form_, compares_texts(found.loss),
                                      [&](const ExampleRow& row, int64_t) { rows.check(row); });
    dev_texts_ = std::make_unique<LabelledTexts>(*dev_file_, *form_, std::move(scan), table_, found.loss);
    dev_ = {dev_texts_.get(), std::vector<int64_t>(to_size(dev_texts_->units()))};
    std::iota(dev_.units.begin(), dev_.units.end(), 0);
    train_ = rest_of({});
  }
  if (!session_.resumed) check_untrained_dev(given, found.first_rows);
}

// Returns the units of the training file that are set aside, in their order: the same for each share, and more for a
// larger one. The first row of each label is for training.
std::vector<int64_t> ClassifierData::dev_units(double share, const std::vector<int64_t>& first_rows) const {
  const std::set<int64_t> kept(first_rows.begin(), first_rows.end());
  const int64_t all = train_texts_->units();
  const auto wanted = std::max<int64_t>(1, std::llround(share * static_cast<double>(all)));
  std::vector<int64_t> units;
  for (const int64_t unit : shuffled_rows(all, 0, 0)) {
    if (std::ssize(units) == wanted) break;
    if (!kept.contains(train_texts_->first_row(unit))) units.push_back(unit);
  }
  if (units.empty() || std::ssize(units) == all)
    fail("{}: is too short to set aside {} of it (dev_share)", files_.train, share);
  std::ranges::sort(units);
  return units;
}

// Returns the part of the training file without some units, which are in ascending order.
LabelledPart ClassifierData::rest_of(const std::vector<int64_t>& units) const {
  LabelledPart part{train_texts_.get()};
  part.units.reserve(to_size(train_texts_->units() - std::ssize(units)));
  auto next = units.begin();
  for (int64_t unit = 0; unit < train_texts_->units(); unit++) {
    if (next != units.end() && *next == unit)
      ++next;
    else
      part.units.push_back(unit);
  }
  return part;
}

// Throws Error if a classifier was trained on the rows for evaluation. Other files cannot be compared.
void ClassifierData::check_untrained_dev(const ClassifierRecipe& given, const std::vector<int64_t>& first_rows) const {
  const std::string trained = trained_text(files_.init);
  const RunDirectory init(files_.init);
  if (trained.empty() || !std::filesystem::exists(init.labels())) return;
  if (!files_.dev.empty()) {
    if (trained == ClassificationTask::fingerprint_of(dev_))
      fail("{}: was trained on {}, so that scores on it would be too good; use another dev file", files_.init,
           files_.dev);
    return;
  }
  const double share = given.labels.dev_share;
  const double before = read_fields<LabelTrainingConfig>(init, init.labels()).dev_share;
  const auto is_trained_without = [&](const std::vector<int64_t>& units) {
    return trained == ClassificationTask::fingerprint_of(rest_of(units));
  };
  if (is_trained_without({}) || (before < share && is_trained_without(dev_units(before, first_rows))))
    fail(
        "{}: was trained on rows of {} that are set aside here (dev_share {}), so that scores would be too good; use "
        "its dev_share or a dev file",
        files_.init, files_.train, share);
}

void ClassifierData::set_sizes(ClassifierRecipe& recipe) const {
  const DropoutConfig dropout = recipe.model.dropout;
  recipe.model = start_.run.config;
  recipe.model.dropout = dropout;
  const ClassificationConfig& c = classification_;
  recipe.head = {.kind = TextHeadConfig::Kind::labels,
                 .pooling = c.pooling,
                 .labels = {std::ssize(c.labels), c.activation, c.dense_bias, c.norm},
                 .dropout = recipe.labels.head_dropout};
}

void ClassifierData::set_limits(ClassifierRecipe& recipe) const {
  TrainingConfig& training = recipe.training;
  const int64_t count = batches(recipe);
  set_cosine_end(training, count);
  std::vector<std::string> chosen;
  if (training.eval_every == 0) {
    training.eval_every = std::max<int64_t>(1, count / training.accumulate / training.shards);
    chosen.push_back(fmt::format("eval_every {}", training.eval_every));
  }
  const bool fits = recipe.fit && !session_.resumed && training.schedule == Schedule::cosine;
  if (fits && !recipe.given.contains("warmup_steps")) {
    training.warmup_steps = std::llround(kWarmupShare * static_cast<double>(training.max_steps));
    chosen.push_back(fmt::format("warmup_steps {} of {}", training.warmup_steps, training.max_steps));
  }
  if (!chosen.empty() && !session_.resumed) session_.report(fmt::format("chosen: {}", fmt::join(chosen, ", ")));
}

std::unique_ptr<Task> ClassifierData::make_task(const ClassifierRecipe& recipe) const {
  return std::make_unique<ClassificationTask>(recipe, train_, dev_, goal_);
}

void ClassifierData::create_run(const RunDirectory& run, const ClassifierRecipe& recipe) const {
  ClassifierRun parts;
  parts.config = recipe.model;
  parts.embedding = start_.run.embedding;
  parts.embedding.dense.clear();
  if (recipe.labels.max_length > 0) parts.embedding.max_length = recipe.labels.max_length;
  parts.codec = start_.run.codec;
  parts.edges = start_.run.edges;
  parts.classification = classification_;
  qkv::create_run(run, parts, [&](const RunDirectory& partial) {
    make_directory(partial.checkpoints());
    write_fields(partial.training(), recipe.training);
    write_fields(partial.labels(), recipe.labels);
    const std::unique_ptr<Transformer<float>> start = start_model(files_.init, recipe, keeps_head_);
    save_weights(partial.start(), start->parameters(), start->parameters().values());
    write_text_head(partial, *start);
  });
}

}  // namespace

ClassifierRecipe classifier_fine_tuning() {
  ClassifierRecipe recipe;
  TrainingConfig& t = recipe.training;
  t.optimizer = Optimizer::adamw;
  t.learning_rate = 2e-5;
  t.warmup_steps = 100;
  t.schedule = Schedule::cosine;
  t.beta2 = 0.999;
  t.epsilon = 1e-8;
  t.weight_decay = 0.01;
  t.clip_norm = 1;
  t.label_smoothing = 0;
  t.max_epochs = 3;
  t.eval_every = t.save_every = 0;
  t.average = 0;
  t.ema_decay = 0;
  return recipe;
}

ClassifierRecipe classifier_fine_tuning(const std::string& run) {
  ClassifierRecipe recipe = classifier_fine_tuning();
  const TextStart start = read_text_start(run);
  recipe.model = start.run.config;
  if (start.classification) recipe.labels.head_activation = start.classification->activation;
  return recipe;
}

bool train_classifier(const ClassifierFiles& files, const ClassifierRecipe& recipe, const std::string& out,
                      const TrainingObserver& observer, const RankOptions& ranks) {
  std::vector<std::string> texts = {files.train};
  if (!files.dev.empty()) texts.push_back(files.dev);
  ClassifierRecipe on_cpu = recipe;
  if (on_cpu.training.device == ComputeDevice::automatic) on_cpu.training.device = ComputeDevice::cpu;
  return train_on_ranks(ranks, out, observer, texts,
                        [&](const std::string& run, const TrainingObserver& own, Ranks* all) {
                          return train_on<ClassifierData>(run, own, all, on_cpu, files);
                        });
}

}  // namespace qkv
