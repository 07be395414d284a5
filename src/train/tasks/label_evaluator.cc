#include "train/tasks/label_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/to_size.h"
#include "data/batcher.h"
#include "eval/classification_scores.h"
#include "eval/number_scores.h"
#include "eval/retrieval_scores.h"
#include "io/runs/text_head_file.h"
#include "model/text_parts.h"
#include "ops/label_loss.h"
#include "ranks/gather_blocks.h"
#include "train/tasks/objective.h"

namespace qkv {
namespace {

constexpr int64_t kBlockRows = 256;

// Returns the index of the largest value, of equal ones the first.
float place_of_largest(std::span<const float> z) { return static_cast<float>(std::ranges::max_element(z) - z.begin()); }

// Appends the ranks of the texts of a query whose number is above the least, those with a better score first. Among
// equal scores, they have the last ranks. records: pairs of number and score.
void append_relevant_ranks(std::span<const float> records, std::vector<int64_t>& ranks) {
  struct Text {
    float score;
    bool is_relevant;
  };
  float least = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < records.size(); i += 2) least = std::min(least, records[i]);
  std::vector<Text> order;
  for (size_t i = 0; i < records.size(); i += 2)
    order.push_back(
        {std::isnan(records[i + 1]) ? -std::numeric_limits<float>::infinity() : records[i + 1], records[i] > least});
  std::ranges::stable_sort(order, [](const Text& a, const Text& b) {
    return a.score != b.score ? a.score > b.score : a.is_relevant < b.is_relevant;
  });
  for (size_t i = 0; i < order.size(); i++)
    if (order[i].is_relevant) ranks.push_back(static_cast<int64_t>(i) + 1);
}

}  // namespace

Loss LabelObjective::loss_of(const LabelledBatch& batch, double smoothing, Matrix<const float> z,
                             Matrix<float> dz) const {
  Loss sum;
  sum.tokens = batch.rows();
  sum.loss = label_loss<float>(loss, batch.targets(weights, smoothing), z, dz);
  sum.nll = smoothing > 0 ? label_loss<float>(loss, batch.targets(weights, 0), z, {}) : sum.loss;
  return sum;
}

LabelEvaluator::LabelEvaluator(const LabelledTexts& texts, std::vector<int64_t> units, const LabelObjective& objective,
                               int64_t batch_tokens)
    : texts_(texts), units_(std::move(units)), objective_(objective), batch_tokens_(batch_tokens) {
  const auto rows_of = [&](int64_t i) { return texts_.rows_of(units_[to_size(i)]); };
  blocks_ = batch_offsets(std::ssize(units_), std::max(kBlockRows, texts_.scan().longest_list), rows_of);
  rows_before_ = {0};
  for (size_t b = 1; b < blocks_.size(); b++) {
    rows_before_.push_back(rows_before_.back());
    for (int64_t i = blocks_[b - 1]; i < blocks_[b]; i++) rows_before_.back() += rows_of(i);
  }
}

Metric LabelEvaluator::metric() const {
  switch (objective_.kind) {
    case LabelKind::one:
      return {"accuracy"};
    case LabelKind::several:
      return {"f1_micro"};
    case LabelKind::number:
      break;
  }
  return {texts_.has_lists() ? "NDCG@10" : "spearman"};
}

DevScore LabelEvaluator::evaluate(const Transformer<float>& model, double smoothing, const RankPartition& partition,
                                  Arena& arena) const {
  const int64_t labels = model.text_head()->width(), width = record_width(labels);
  std::vector<int64_t> begins;
  for (const int64_t row : rows_before_) begins.push_back(row * width);
  std::vector<float> records(to_size(begins.back()));
  const auto block_of = [&](int64_t b) {
    return std::span(records).subspan(to_size(begins[to_size(b)]),
                                      to_size(begins[to_size(b + 1)] - begins[to_size(b)]));
  };
  const Loss loss = loss_of_batches(partition, std::ssize(blocks_) - 1,
                                    [&](int64_t b) { return score_block(model, b, smoothing, arena, block_of(b)); });
  gather_blocks(partition, begins, records);
  DevScore score;
  score.breaks_ties = true;
  const auto rows_scored = static_cast<double>(rows());
  score.loss = loss.loss / rows_scored;
  score.measures.push_back({"loss", loss.nll / rows_scored, 4});
  add_measures(records, labels, score);
  score.write_more = [&model](const RunDirectory& run) { write_text_head(run, model); };
  return score;
}

Loss LabelEvaluator::score_block(const Transformer<float>& model, int64_t block, double smoothing, Arena& arena,
                                 std::span<float> records) const {
  LabelledBatch batch;
  const int64_t first = blocks_[to_size(block)], end = blocks_[to_size(block + 1)];
  texts_.fill(std::span(units_).subspan(to_size(first), to_size(end - first)), batch);
  const int64_t labels = model.text_head()->width();
  std::vector<float> outputs(to_size(batch.rows() * labels));
  const Matrix<float> z(outputs.data(), batch.rows(), labels);
  Context context{.arena = arena, .inference = true};
  TextParts<float>().outputs(model, batch.texts, batch_tokens_, context, z);
  const size_t width = to_size(record_width(labels)), K = to_size(labels);
  for (size_t i = 0; i < to_size(batch.rows()); i++) {
    const std::span<const float> own = std::span<const float>(outputs).subspan(i * K, K);
    const std::span<float> record = records.subspan(i * width, width);
    if (objective_.kind == LabelKind::one) {
      record[0] = static_cast<float>(batch.labels[i]);
      record[1] = place_of_largest(own);
    } else {
      const size_t half = width / 2;
      std::copy_n(batch.values.begin() + static_cast<std::ptrdiff_t>(i * half), half, record.begin());
      std::copy_n(own.begin(), half, record.begin() + static_cast<std::ptrdiff_t>(half));
    }
  }
  return objective_.loss_of(batch, smoothing, z, {});
}

namespace {

std::vector<int32_t> column_of_labels(std::span<const float> records, size_t column) {
  std::vector<int32_t> labels;
  for (size_t i = column; i < records.size(); i += 2) labels.push_back(static_cast<int32_t>(records[i]));
  return labels;
}

void add_label_measures(const ClassificationScores& scores, bool is_one, DevScore& score) {
  score.metric = is_one ? scores.accuracy : scores.f1_micro;
  if (is_one) score.measures.push_back({"accuracy", scores.accuracy, 4});
  score.measures.push_back({"f1_micro", scores.f1_micro, 4});
  score.measures.push_back({"f1_macro", scores.f1_macro, 4});
  if (!is_one) score.measures.push_back({"subset_accuracy", scores.accuracy, 4});
}

void add_label_set_measures(std::span<const float> records, int64_t labels, DevScore& score) {
  std::vector<uint8_t> truth, predicted;
  const size_t K = to_size(labels);
  for (size_t i = 0; i < records.size(); i++) {
    const bool is_truth = i % (2 * K) < K;
    (is_truth ? truth : predicted).push_back(records[i] > 0);
  }
  add_label_measures(label_set_scores(truth, predicted, labels), false, score);
}

void add_number_measures(std::span<const float> records, LabelLoss loss, DevScore& score) {
  std::vector<double> truth, predicted;
  for (size_t i = 0; i < records.size(); i += 2) {
    truth.push_back(records[i]);
    const auto z = static_cast<double>(records[i + 1]);
    predicted.push_back(loss == LabelLoss::sigmoid ? 1 / (1 + std::exp(-z)) : z);
  }
  score.metric = spearman(predicted, truth);
  score.measures.push_back({"spearman", score.metric, 4});
  score.measures.push_back({"mse", mean_squared_error(predicted, truth), 4});
}

}  // namespace

void LabelEvaluator::add_measures(std::span<const float> records, int64_t labels, DevScore& score) const {
  switch (objective_.kind) {
    case LabelKind::one:
      return add_label_measures(
          classification_scores(column_of_labels(records, 0), column_of_labels(records, 1), labels), true, score);
    case LabelKind::several:
      return add_label_set_measures(records, labels, score);
    case LabelKind::number:
      break;
  }
  if (!texts_.has_lists()) return add_number_measures(records, objective_.loss, score);
  std::vector<int64_t> ranks, offsets = {0};
  size_t row = 0;
  for (const int64_t unit : units_) {
    const size_t own = to_size(texts_.rows_of(unit));
    append_relevant_ranks(records.subspan(2 * row, 2 * own), ranks);
    row += own;
    if (std::ssize(ranks) > offsets.back()) offsets.push_back(std::ssize(ranks));
  }
  const RetrievalScores found = retrieval_scores(ranks, offsets);
  score.metric = found.ndcg_10;
  score.measures.push_back({"NDCG@10", found.ndcg_10, 4});
  score.measures.push_back({"MRR@10", found.mrr_10, 4});
}

}  // namespace qkv
