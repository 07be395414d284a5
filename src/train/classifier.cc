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
#include "train/loop/train_on_files.h"
#include "train/optimizer/trained_parts.h"
#include "train/tasks/classification_task.h"
#include "train/text_start.h"

namespace qkv {
namespace {

constexpr size_t kListedLabels = 10;
constexpr const char* kNumberLabel = "score";  // the name of a number

// Returns a number of end tokens between the texts of a pair that suits an encoder whose run has none: two as in
// RoBERTa and MPNet, whose vocabularies have <pad>, otherwise one.
int64_t usual_separators(const EncoderRun& run) {
  const bool has_edges = run.embedding.start == "<s>" && run.embedding.end == "</s>";
  return run.config.token_types <= 1 && has_edges && run.codec.id("<pad>") ? 2 : 1;
}

// Whether a new head has a norm: that of ModernBERT has one, whose first layer lacks a norm.
bool has_head_norm(const ModelConfig& model) { return model.is_encoder_only() && !model.norm.first; }

// The pooling of a new head: classes of encoders read the first token.
Pooling usual_pooling(const EncoderRun& run) {
  return run.config.is_encoder_only() ? Pooling::first : run.embedding.pooling;
}

// Returns "a (10), b (7)".
std::string describe(const LabelCounts::Summary& found) {
  std::string text;
  for (size_t i = 0; i < std::min(found.labels.size(), kListedLabels); i++)
    text += fmt::format("{}{} ({})", i > 0 ? ", " : "", excerpt(found.labels[i]), found.rows[i]);
  return found.labels.size() > kListedLabels ? text + ", …" : text;
}

// Returns whether texts of a unit are compared.
bool has_order(const LabelledPart& part) {
  return std::ranges::any_of(part.units, [&](int64_t unit) { return part.texts->is_ordered(unit); });
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
  void separate_pairs();
  void read_train(const ClassifierRecipe& given);
  void report_labels(const ClassifierRecipe& given, const LabelCounts::Summary& found) const;
  void choose_head(const ClassifierRecipe& given, const LabelCounts::Summary& found);
  void read_dev(const ClassifierRecipe& given, const LabelCounts::Summary& found);
  std::vector<int64_t> dev_units(double share, const LabelCounts::Summary& found) const;
  LabelledPart rest_of(const std::vector<int64_t>& units) const;
  void check_order(LabelLoss loss) const;
  void check_untrained_dev(const ClassifierRecipe& given, const LabelCounts::Summary& found) const;

  const TrainingSession& session_;
  const ClassifierFiles& files_;
  TextStart start_;
  ClassificationConfig classification_;
  bool keeps_head_ = false;
  std::optional<RowTokenizer> tokenizer_;
  std::unique_ptr<ExampleFile> train_file_, dev_file_;  // the second is null without a file of its own
  LabelTable table_;
  LabelObjective objective_;
  std::unique_ptr<LabelledTexts> train_texts_, dev_texts_;  // likewise
  LabelledPart train_, dev_;
};

void ClassifierData::check(const ClassifierRecipe& given, const ClassifierFiles& files) {
  qkv::check(given.labels);
  if (files.train.empty()) fail("training: train must name a file");
  const TrainingConfig& training = given.training;
  if (training.device != ComputeDevice::cpu)
    fail("training: device must be cpu for a classifier (is {})", name_of(training.device));
  check_fine_tuning(training, files.init);
  if (training.r_drop != 0) fail("training: r_drop must be 0 for a classifier (is {})", training.r_drop);
  const LabelTrainingConfig& c = given.labels;
  const bool may_split = c.loss == LabelLoss::automatic || c.loss == LabelLoss::sigmoid;
  if (!c.label_separator.empty() && !may_split)
    fail("training: label_separator must be empty with loss {} (is {})", name_of(c.loss), excerpt(c.label_separator));
}

ClassifierRecipe ClassifierData::saved_recipe(const RunDirectory& run) {
  check_resumable(run, RunKind::classifier);
  if (!std::filesystem::exists(run.labels()))
    fail("{}: exists but has no labels.json; expected a run that training a classifier started, or a new directory",
         run.root());
  return {read_recipe(run), read_fields<LabelTrainingConfig>(run, run.labels())};
}

ClassifierData::ClassifierData(const TrainingSession& session, const ClassifierRecipe& given,
                               const ClassifierFiles& files)
    : session_(session), files_(files) {
  if (!session.resumed && files.init.empty()) fail("training: init must name the run that training starts from");
  if (session.resumed) expect_started_from(session.run, files.init);
  start_ = read_text_start(session.resumed ? session.run.root() : files.init);
  expect_same_shape(session.resumed ? session.run.root() : files.init, start_.run.config, given.model);
  if (!session.resumed)
    session.report(fmt::format("starting from {}: learning_rate {}, schedule {}", files.init,
                               given.training.learning_rate, name_of(given.training.schedule)));
  train_file_ = std::make_unique<ExampleFile>(files_.train, files_.columns, ExampleArrays::last);
  session.report(describe_columns(*train_file_));
  separate_pairs();
  const int64_t separators = start_.classification                    ? start_.classification->separators
                             : start_.kind == RunKind::language_model ? 1
                                                                      : usual_separators(start_.run);
  tokenizer_.emplace(RowTokenizer{start_.run, separators,
                                  text_length(start_.run, given.labels.max_length, least_length(start_.run.edges))});
  read_train(given);
}

// Puts an end token between and after the texts of a pair for a language model, which has none after a text.
void ClassifierData::separate_pairs() {
  EncoderRun& run = start_.run;
  if (train_file_->fields() != 3 || !run.edges.after.empty()) return;
  if (start_.kind == RunKind::language_model) {
    const RunDirectory init(files_.init);
    const auto language = read_fields<LanguageConfig>(init, init.language());
    const bool has_spellings = run.codec.unit() != TextUnit::bytes && run.codec.unit() != TextUnit::characters;
    if (!language.ends.empty())
      run.embedding.end = language.ends.front();
    else if (has_spellings && run.codec.end() >= 0)
      run.embedding.end = run.codec.piece(run.codec.end());
  }
  if (run.embedding.end.empty())
    fail("{}: has no end token to separate the texts of {}; it can be trained on one text and a label", files_.init,
         files_.train);
  run.edges = edges_of(run.embedding, run.codec, files_.init);
}

// Reads the rows for training, from which the labels follow, then those for evaluation.
void ClassifierData::read_train(const ClassifierRecipe& given) {
  const bool compares = compares_texts(given.labels.loss);
  LabelCounts counts(given.labels);
  const LabelledScan scan = scan_labelled(
      *train_file_, *tokenizer_, compares,
      [&](const ExampleRow& row, int64_t number) { counts.add(row.fields.back(), number, train_file_->place(row)); });
  const LabelCounts::Summary found = counts.summary(files_.train);
  choose_head(given, found);
  std::vector<int64_t> rows;  // of the labels in the order of the logits
  for (const std::string& label : classification_.labels) {
    const auto place = std::ranges::find(found.labels, label);
    if (found.kind != LabelKind::number) rows.push_back(found.rows[to_size(place - found.labels.begin())]);
  }
  classification_.scores = score_function(found.loss);
  classification_.separators = tokenizer_->separators;
  table_ = LabelTable(found.kind, given.labels, classification_.labels);
  objective_ = {found.kind, found.loss,
                label_weights(given.labels, found.loss, classification_.labels, rows, train_file_->rows())};
  if (given.training.label_smoothing > 0 && found.loss != LabelLoss::softmax)
    fail("training: label_smoothing must be 0 with loss {} (is {})", name_of(found.loss),
         given.training.label_smoothing);
  train_texts_ = std::make_unique<LabelledTexts>(*train_file_, *tokenizer_, scan, table_, found.loss);
  if (compares && scan.longest_list < 2)
    fail("{}: must have several texts of one query in consecutive rows for loss {} (each row has another)",
         files_.train, name_of(found.loss));
  report_labels(given, found);
  if (compares)
    session_.report(fmt::format("{} queries, the longest with {} rows", std::ssize(scan.lists) - 1, scan.longest_list));
  if (scan.cut > 0)
    session_.report(
        fmt::format("{} of {} rows are truncated to {} tokens", scan.cut, train_file_->rows(), tokenizer_->max_length));
  read_dev(given, found);
}

void ClassifierData::report_labels(const ClassifierRecipe& given, const LabelCounts::Summary& found) const {
  session_.report(fmt::format("{}: {} rows, {}", files_.train, train_file_->rows(),
                              found.kind == LabelKind::number
                                  ? fmt::format("numbers, loss {}", name_of(found.loss))
                                  : fmt::format("{} labels: {}", found.labels.size(), describe(found))));
  if (!found.not_number.empty())
    session_.report(fmt::format("{} is no number, so that the numbers of other rows are labels", found.not_number));
  const int64_t single = std::ranges::count(found.rows, 1);
  if (found.kind == LabelKind::one && 2 * single > train_file_->rows())
    session_.report(fmt::format("{} of {} rows have a label that no other row has; loss squared learns numbers", single,
                                train_file_->rows()));
  const auto has_comma = [](const std::string& label) { return label.find(',') != std::string::npos; };
  if (found.loss == LabelLoss::sigmoid && given.labels.label_separator.empty() &&
      std::ranges::any_of(found.labels, has_comma))
    session_.report("labels with commas are not divided; label_separator \",\" divides them");
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
  classification_.pooling = pooling_of(config.pooling, before ? before->pooling : usual_pooling(start_.run));
  classification_.activation = config.head_activation;
  keeps_head_ = fits && before->pooling == classification_.pooling && before->activation == classification_.activation;
  classification_.norm = has_head_norm(start_.run.config);
  if (keeps_head_) classification_.dense_bias = before->dense_bias, classification_.norm = before->norm;
  session_.report(keeps_head_ ? fmt::format("the head of {} is kept", files_.init) : "the head is new");
}

void ClassifierData::read_dev(const ClassifierRecipe& given, const LabelCounts::Summary& found) {
  if (files_.dev.empty()) {
    dev_ = {train_texts_.get(), dev_units(given.labels.dev_share, found)};
    train_ = rest_of(dev_.units);
  } else {
    const bool has_columns = !files_.dev_columns.empty();
    dev_file_ = std::make_unique<ExampleFile>(files_.dev, has_columns ? files_.dev_columns : files_.columns,
                                              ExampleArrays::last);
    if (dev_file_->fields() != train_file_->fields())
      fail("{}: must have {} columns as {} (has {})", files_.dev, train_file_->fields(), files_.train,
           dev_file_->fields());
    const LabelledTexts rows(*dev_file_, *tokenizer_, {}, table_, found.loss);
    LabelledScan scan = scan_labelled(*dev_file_, *tokenizer_, compares_texts(found.loss),
                                      [&](const ExampleRow& row, int64_t) { rows.check(row); });
    dev_texts_ = std::make_unique<LabelledTexts>(*dev_file_, *tokenizer_, std::move(scan), table_, found.loss);
    dev_ = {dev_texts_.get(), std::vector<int64_t>(to_size(dev_texts_->units()))};
    std::iota(dev_.units.begin(), dev_.units.end(), 0);
    train_ = rest_of({});
  }
  if (compares_texts(found.loss)) check_order(found.loss);
  if (!session_.resumed) check_untrained_dev(given, found);
}

// Returns the units of the training file that are set aside. The first row of each label is for training.
std::vector<int64_t> ClassifierData::dev_units(double share, const LabelCounts::Summary& found) const {
  const std::set<int64_t> kept(found.first_rows.begin(), found.first_rows.end());
  const int64_t all = train_texts_->units();
  if (std::ssize(kept) == all && !found.not_number.empty())
    fail("{} is no number, so that all rows have labels of their own; correct it, or set loss and dev",
         found.not_number);
  if (std::ssize(kept) == all)
    fail("{}: each row has a label of its own, so that none can be set aside for evaluation; set dev", files_.train);
  return chosen_for_dev(files_.train, all, share, kept);
}

// Returns the part of the training file without some units, which are in ascending order.
LabelledPart ClassifierData::rest_of(const std::vector<int64_t>& units) const {
  return {train_texts_.get(), numbers_without(train_texts_->units(), units)};
}

// Throws Error if no texts are compared in training, or in evaluations.
void ClassifierData::check_order(LabelLoss loss) const {
  if (!has_order(train_))
    fail("{}: must have a query whose texts have different numbers for loss {} (has none)", files_.train,
         name_of(loss));
  if (has_order(dev_)) return;
  if (!files_.dev.empty()) fail("{}: must have a query whose texts have different numbers (has none)", files_.dev);
  fail("{}: no query that is set aside has texts with different numbers; set dev, or a larger dev_share", files_.train);
}

// Throws Error if the initial run was trained on the rows for evaluation.
void ClassifierData::check_untrained_dev(const ClassifierRecipe& given, const LabelCounts::Summary& found) const {
  const RunDirectory init(files_.init);
  if (!std::filesystem::exists(init.labels())) return;
  const auto trained_without = [&](double share) {
    return rest_of(share > 0 ? dev_units(share, found) : std::vector<int64_t>()).fingerprint();
  };
  expect_untrained_rows(files_.init,
                        {files_.dev, files_.train, dev_.fingerprint(), given.labels.dev_share,
                         read_fields<LabelTrainingConfig>(init, init.labels()).dev_share, trained_without});
}

void ClassifierData::set_sizes(ClassifierRecipe& recipe) const {
  const DropoutConfig dropout = recipe.model.dropout;
  recipe.model = start_.run.config;
  recipe.model.dropout = dropout;
  const ClassificationConfig& c = classification_;
  recipe.head = {.kind = TextHeadConfig::Kind::labels,
                 .pooling = c.pooling,
                 .labels = {std::ssize(c.labels), c.activation, c.dense_bias, c.norm},
                 .dropout = recipe.labels.head_dropout,
                 .apart = recipe.training.lora_rank > 0};
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
    set_row_warmup(training);
    chosen.push_back(fmt::format("warmup_steps {} of {}", training.warmup_steps, training.max_steps));
  }
  if (!chosen.empty() && !session_.resumed) session_.report(fmt::format("chosen: {}", fmt::join(chosen, ", ")));
}

std::unique_ptr<Task> ClassifierData::make_task(const ClassifierRecipe& recipe) const {
  return std::make_unique<ClassificationTask>(recipe, train_, dev_, objective_);
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
    write_text_start(files_.init, recipe, *start, partial);
  });
}

}  // namespace

ClassifierRecipe classifier_fine_tuning() {
  ClassifierRecipe recipe;
  TrainingConfig& t = recipe.training;
  set_row_fine_tuning(t);
  t.max_epochs = 3;
  t.eval_every = t.save_every = 0;
  return recipe;
}

ClassifierRecipe classifier_fine_tuning(const std::string& run) {
  ClassifierRecipe recipe = classifier_fine_tuning();
  const TextStart start = read_text_start(run);
  recipe.model = start.run.config;
  if (start.classification)
    recipe.labels.head_activation = start.classification->activation;
  else if (has_head_norm(start.run.config))
    recipe.labels.head_activation = HeadActivation::gelu;
  return recipe;
}

bool train_classifier(const ClassifierFiles& files, const ClassifierRecipe& recipe, const std::string& out,
                      const TrainingObserver& observer, const RankOptions& ranks) {
  return train_on_rows<ClassifierData>(files, recipe, out, observer, ranks);
}

}  // namespace qkv
