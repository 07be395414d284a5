// Measures of a classifier: what rows have, compared with what is predicted for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/classification_scores.h"
#include "qkv/training.h"
#include "train/tasks/label_table.h"

namespace qkv {

// The truth of each row, followed by its prediction. For one label an index each; for several K values each: 1 for each
// label that the row has, else 0, and positive numbers for the labels that are predicted; for a number one each.
struct LabelRecords {
  LabelKind kind = LabelKind::one;
  int64_t labels = 1;                  // K
  std::span<const float> values = {};  // [rows, 2] or [rows, 2 K]
};

// Requires one label or several.
ClassificationScores label_scores(const LabelRecords& records);

// The measures; the first one selects the best weights. Accuracy, F1 micro and macro of one label; F1 micro and macro
// and the share of rows with the right set of several.
std::vector<EvaluationReport::Measure> label_measures(const ClassificationScores& scores, LabelKind kind);
// Spearman's correlation and the mean squared error of numbers. are_logits: predictions are logits of shares.
std::vector<EvaluationReport::Measure> number_measures(const LabelRecords& records, bool are_logits);
// NDCG@10 and MRR@10 of numbers: query q has rows lists[q] … lists[q + 1] − 1, of which those are relevant whose number
// is above the least one of the query. Queries without such a row do not count; of equal predictions, relevant rows
// have the last ranks.
std::vector<EvaluationReport::Measure> order_measures(const LabelRecords& records, std::span<const int64_t> lists);

}  // namespace qkv
