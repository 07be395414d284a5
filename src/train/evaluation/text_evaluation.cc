// qkv::evaluate_texts: the predictions of a classifier or an embedder, compared with the rows of a file.
#include "qkv/text_evaluation.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "core/arena.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/examples/example_file.h"
#include "data/examples/shuffled_rows.h"
#include "io/runs/run.h"
#include "qkv/classifier.h"
#include "qkv/classifier_training.h"
#include "qkv/embedder.h"
#include "qkv/embedder_training.h"
#include "train/evaluation/embedding_scores.h"
#include "train/evaluation/label_measures.h"
#include "train/tasks/label_table.h"
#include "train/tasks/labelled_texts.h"
#include "train/tasks/text_rows.h"
#include "train/text_start.h"

namespace qkv {
namespace {

void add_measures(const std::vector<EvaluationReport::Measure>& measures, TextEvaluation& result) {
  for (const auto& measure : measures) result.measures.emplace_back(measure.name, measure.value);
}

// The truth and the predictions of a classifier.
class LabelComparison {
 public:
  LabelComparison(const std::string& run, const std::string& rows, const TextEvaluationOptions& options)
      : classifier_(run, options.placement), file_(rows, options.columns, ExampleArrays::last), queries_(file_) {
    LabelTrainingConfig config;  // of the training, if the run was trained here
    const RunDirectory directory(run);
    if (std::filesystem::exists(directory.labels()))
      config = read_fields<LabelTrainingConfig>(directory, directory.labels());
    if (!options.label_separator.empty()) config.label_separator = options.label_separator;
    ranks_ = options.ranking || compares_texts(config.loss);
    table_ = LabelTable(kind(), config, classifier_.labels());
    if (options.ranking && kind() != LabelKind::number)
      fail("{}: ranking requires a run that predicts one number (has {} labels)", run, classifier_.labels().size());
    if (!options.label_separator.empty() && kind() != LabelKind::several)
      fail("{}: label_separator requires a run of several labels a text", run);
    check_label_columns(file_, ranks_);
  }

  TextEvaluation compare() {
    for_blocks_of_rows(file_.rows(), [&](std::span<const int64_t> numbers) { add(numbers); });
    result_.rows = file_.rows();
    const LabelRecords records{kind(), labels(), values_};
    if (kind() == LabelKind::number) {
      result_.compared = ranks_ ? "rankings" : "numbers";
      add_measures(ranks_ ? ranking_measures(records) : number_measures(records, false), result_);
    } else {
      result_.compared = kind() == LabelKind::one ? "labels" : "sets of labels";
      add_scores(label_scores(records));
    }
    return std::move(result_);
  }

 private:
  int64_t labels() const { return std::ssize(classifier_.labels()); }
  LabelKind kind() const {
    if (labels() == 1) return LabelKind::number;
    return classifier_.scores() == ScoreFunction::softmax ? LabelKind::one : LabelKind::several;
  }

  void add(std::span<const int64_t> numbers) {
    const std::vector<ExampleRow> rows = file_.read(numbers);
    std::vector<ClassifierInput> inputs;
    for (size_t i = 0; i < rows.size(); i++) {
      check_texts(rows[i], file_.place(rows[i]));
      if (ranks_) queries_.add(rows[i], numbers[i], scan_);
      inputs.push_back({rows[i].fields[0]});
      if (rows[i].fields.size() == 3) inputs.back().pair = rows[i].fields[1];
    }
    const Classifications found = classifier_.classify(inputs, {.top = 0});
    result_.cut += found.cut;
    for (size_t i = 0; i < rows.size(); i++) {
      add_truth(rows[i]);
      add_prediction(found.texts[i]);
    }
  }

  void add_truth(const ExampleRow& row) {
    const std::string& field = row.fields.back();
    if (kind() == LabelKind::number) return values_.push_back(static_cast<float>(number_of(field, file_.place(row))));
    const std::vector<int32_t> own = table_.indices(field, file_.place(row));
    if (kind() == LabelKind::one) return values_.push_back(static_cast<float>(own.front()));
    for (int32_t label = 0; label < labels(); label++)
      values_.push_back(std::ranges::binary_search(own, label) ? 1.0f : 0.0f);
  }

  // scores: of all labels, in descending order. Several labels are predicted from a probability of one half on.
  void add_prediction(const std::vector<LabelScore>& scores) {
    if (kind() == LabelKind::one) return values_.push_back(static_cast<float>(scores.front().label));
    if (kind() == LabelKind::number) return values_.push_back(scores.front().score);
    const float half = classifier_.scores() == ScoreFunction::sigmoid ? 0.5f : 0.0f;
    std::vector<float> of_labels(to_size(labels()));
    for (const LabelScore& score : scores) of_labels[to_size(score.label)] = score.score - half;
    values_.insert(values_.end(), of_labels.begin(), of_labels.end());
  }

  std::vector<EvaluationReport::Measure> ranking_measures(const LabelRecords& records) {
    if (std::ranges::find(scan_.are_ordered, true) == scan_.are_ordered.end())
      fail("{}: must have a query whose texts have different numbers (has none)", file_.path());
    scan_.lists.push_back(file_.rows());
    return order_measures(records, scan_.lists);
  }

  void add_scores(const ClassificationScores& scores) {
    add_measures(label_measures(scores, kind()), result_);
    for (size_t i = 0; i < scores.labels.size(); i++) {
      const LabelQuality& q = scores.labels[i];
      result_.labels.push_back({classifier_.labels()[i], q.texts, q.predicted, q.correct, q.precision, q.recall, q.f1});
    }
    result_.confusion = scores.confusion;
  }

  Classifier classifier_;
  ExampleFile file_;
  bool ranks_ = false;
  LabelTable table_;
  TextEvaluation result_ = {};
  std::vector<float> values_ = {};  // of LabelRecords
  QueryLists queries_;
  LabelledScan scan_ = {};  // the queries
};

// Returns how a run was trained, or the defaults.
EmbedderConfig training_of(const std::string& run) {
  const RunDirectory directory(run);
  if (!std::filesystem::exists(directory.embedder())) return {};
  return read_fields<EmbedderConfig>(directory, directory.embedder());
}

TextEvaluation compare_vectors(const std::string& run, const std::string& path, const TextEvaluationOptions& options) {
  if (options.ranking || !options.label_separator.empty())
    fail("{}: {} requires a classifier", run, options.ranking ? "ranking" : "label_separator");
  const auto file = std::make_shared<const ExampleFile>(path, options.columns);
  const RowColumns columns = find_columns(*file);
  if (columns.texts < 2 || (columns.has_score && columns.texts > 3))
    fail("{}: must have columns of two texts, with or without a score (has {} text{}{})", path, columns.texts,
         columns.texts == 1 ? "" : "s", columns.has_score ? " and a score" : "");
  const std::vector<int64_t> numbers = numbers_without(file->rows(), {});
  RowTexts rows = TextRows(file, numbers, columns).read(numbers);
  if (!columns.has_score) rows.texts.resize(to_size(2 * file->rows()));  // negatives are not compared
  DevRows compared{file->rows(), std::ssize(rows.texts) / file->rows(), rows.scores};
  if (!columns.has_score) compared.find_equal(rows.texts);
  const Embeddings vectors = Embedder(run, options.placement).embed(rows.texts);
  TextEvaluation result;
  result.compared = columns.has_score ? "similarities" : "pairs";
  result.rows = file->rows(), result.cut = vectors.cut;
  Arena arena;
  const Matrix<const float> v(vectors.values.data(), std::ssize(rows.texts), vectors.width);
  const EmbedderConfig training = training_of(run);
  add_measures(vector_measures(compared, v, training.similarity, training.matryoshka, arena), result);
  return result;
}

}  // namespace

TextEvaluation evaluate_texts(const std::string& run, const std::string& rows, const TextEvaluationOptions& options) {
  const RunDirectory directory(run);
  const RunKind kind = read_config(directory).kind;
  expect_kind(directory, kind, {RunKind::classifier, RunKind::encoder, RunKind::language_model, RunKind::translator});
  check_columns(options.columns, "columns");
  if (kind == RunKind::classifier) return LabelComparison(run, rows, options).compare();
  return compare_vectors(run, rows, options);
}

std::string to_json(const TextEvaluation& evaluation) {
  nlohmann::ordered_json json = {
      {"compared", evaluation.compared}, {"rows", evaluation.rows}, {"truncated", evaluation.cut}};
  for (const auto& [name, value] : evaluation.measures) json[name] = value;
  for (const TextEvaluation::Label& label : evaluation.labels)
    json["labels"].push_back({{"label", label.name},
                              {"rows", label.rows},
                              {"predicted", label.predicted},
                              {"correct", label.correct},
                              {"precision", label.precision},
                              {"recall", label.recall},
                              {"f1", label.f1}});
  const size_t K = evaluation.labels.size();
  for (size_t i = 0; i < evaluation.confusion.size(); i += K)
    json["confusion"].push_back(
        std::vector<int64_t>(evaluation.confusion.begin() + static_cast<std::ptrdiff_t>(i),
                             evaluation.confusion.begin() + static_cast<std::ptrdiff_t>(i + K)));
  return json.dump();
}

}  // namespace qkv
