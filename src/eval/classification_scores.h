// Measures of predicted labels against true ones, as scikit-learn defines them. A quotient 0 / 0 is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

constexpr int64_t kConfusionLabels = 256;

// The measures of one label.
struct LabelQuality {
  int64_t texts = 0;      // that have it
  int64_t predicted = 0;  // texts for which it is predicted
  int64_t correct = 0;    // texts that have it and for which it is predicted
  double precision = 0;   // correct / predicted
  double recall = 0;      // correct / texts
  double f1 = 0;          // 2 · correct / (texts + predicted)
};

struct ClassificationScores {
  int64_t texts = 0;
  double accuracy = 0;  // share of the texts whose label, or whose whole set of labels, is predicted
  double f1_macro = 0;  // mean of f1 over the labels; with one label per text, over those that occur or are predicted
  double f1_micro = 0;  // 2 · correct / (texts + predicted), each summed over the labels; the accuracy with one label
  std::vector<LabelQuality> labels = {};  // of each label
  // [labels, labels] with one label per text and at most kConfusionLabels labels, otherwise empty: how many texts of
  // the row's label are predicted to have the column's.
  std::vector<int64_t> confusion = {};
};

// Returns the measures of texts with one label each. truth, predicted: a label of each text, from 0 to labels − 1.
// Throws Error for other labels, and for lists of different lengths.
ClassificationScores classification_scores(std::span<const int32_t> truth, std::span<const int32_t> predicted,
                                           int64_t labels);

// Returns the measures of texts with any number of labels each. truth, predicted: [texts, labels], 1 for a label that a
// text has, else 0. Throws Error for sizes that differ or are no multiple of `labels`.
ClassificationScores label_set_scores(std::span<const uint8_t> truth, std::span<const uint8_t> predicted,
                                      int64_t labels);

}  // namespace qkv
