#include "train/evaluation/label_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/to_size.h"
#include "eval/number_scores.h"
#include "eval/retrieval_scores.h"

namespace qkv {
namespace {

std::vector<int32_t> column_of_labels(std::span<const float> values, size_t column) {
  std::vector<int32_t> labels;
  for (size_t i = column; i < values.size(); i += 2) labels.push_back(static_cast<int32_t>(values[i]));
  return labels;
}

// Appends the ranks of the relevant rows of a query, those with a better prediction first.
void append_relevant_ranks(std::span<const float> values, std::vector<int64_t>& ranks) {
  struct Text {
    float score;
    bool is_relevant;
  };
  float least = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < values.size(); i += 2) least = std::min(least, values[i]);
  std::vector<Text> order;
  for (size_t i = 0; i < values.size(); i += 2)
    order.push_back(
        {std::isnan(values[i + 1]) ? -std::numeric_limits<float>::infinity() : values[i + 1], values[i] > least});
  std::ranges::stable_sort(order, [](const Text& a, const Text& b) {
    return a.score != b.score ? a.score > b.score : a.is_relevant < b.is_relevant;
  });
  for (size_t i = 0; i < order.size(); i++)
    if (order[i].is_relevant) ranks.push_back(static_cast<int64_t>(i) + 1);
}

}  // namespace

ClassificationScores label_scores(const LabelRecords& records) {
  if (records.kind == LabelKind::one)
    return classification_scores(column_of_labels(records.values, 0), column_of_labels(records.values, 1),
                                 records.labels);
  std::vector<uint8_t> truth, predicted;
  const size_t K = to_size(records.labels);
  for (size_t i = 0; i < records.values.size(); i++)
    (i % (2 * K) < K ? truth : predicted).push_back(records.values[i] > 0);
  return label_set_scores(truth, predicted, records.labels);
}

std::vector<EvaluationReport::Measure> label_measures(const ClassificationScores& scores, LabelKind kind) {
  if (kind == LabelKind::one)
    return {{"accuracy", scores.accuracy, 4}, {"f1_micro", scores.f1_micro, 4}, {"f1_macro", scores.f1_macro, 4}};
  return {{"f1_micro", scores.f1_micro, 4}, {"f1_macro", scores.f1_macro, 4}, {"subset_accuracy", scores.accuracy, 4}};
}

std::vector<EvaluationReport::Measure> number_measures(const LabelRecords& records, bool are_logits) {
  std::vector<double> truth, predicted;
  for (size_t i = 0; i < records.values.size(); i += 2) {
    truth.push_back(records.values[i]);
    const auto z = static_cast<double>(records.values[i + 1]);
    predicted.push_back(are_logits ? 1 / (1 + std::exp(-z)) : z);
  }
  return {{"spearman", spearman(predicted, truth), 4}, {"mse", mean_squared_error(predicted, truth), 4}};
}

std::vector<EvaluationReport::Measure> order_measures(const LabelRecords& records, std::span<const int64_t> lists) {
  std::vector<int64_t> ranks, offsets = {0};
  for (size_t q = 0; q + 1 < lists.size(); q++) {
    append_relevant_ranks(records.values.subspan(2 * to_size(lists[q]), 2 * to_size(lists[q + 1] - lists[q])), ranks);
    if (std::ssize(ranks) > offsets.back()) offsets.push_back(std::ssize(ranks));
  }
  const RetrievalScores found = retrieval_scores(ranks, offsets);
  return {{"NDCG@10", found.ndcg_10, 4}, {"MRR@10", found.mrr_10, 4}};
}

}  // namespace qkv
