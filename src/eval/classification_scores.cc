#include "eval/classification_scores.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

double share_of(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void check_labels(std::span<const int32_t> labels, const char* name, int64_t count) {
  const auto wrong = std::ranges::find_if(labels, [&](int32_t label) { return label < 0 || label >= count; });
  if (wrong != labels.end())
    fail("{}: label {} of text {} must be from 0 to {}", name, *wrong, wrong - labels.begin() + 1, count - 1);
}

// Computes the quotients from the counts of the labels.
void complete(ClassificationScores& scores, bool only_labels_that_occur) {
  int64_t correct = 0, all = 0, averaged = 0;
  double sum = 0;
  for (LabelQuality& label : scores.labels) {
    label.precision = share_of(label.correct, label.predicted);
    label.recall = share_of(label.correct, label.texts);
    label.f1 = share_of(2 * label.correct, label.texts + label.predicted);
    correct += label.correct;
    all += label.texts + label.predicted;
    averaged += !only_labels_that_occur || label.texts + label.predicted > 0;
    sum += label.f1;
  }
  scores.f1_micro = share_of(2 * correct, all);
  scores.f1_macro = averaged == 0 ? 0 : sum / static_cast<double>(averaged);
}

}  // namespace

ClassificationScores classification_scores(std::span<const int32_t> truth, std::span<const int32_t> predicted,
                                           int64_t labels) {
  if (truth.size() != predicted.size())
    fail("truth and predicted must have the same number of labels (are {} and {})", truth.size(), predicted.size());
  check_labels(truth, "truth", labels);
  check_labels(predicted, "predicted", labels);
  ClassificationScores scores;
  scores.texts = std::ssize(truth);
  scores.labels.resize(to_size(labels));
  if (labels <= kConfusionLabels) scores.confusion.resize(to_size(labels * labels));
  int64_t correct = 0;
  for (size_t i = 0; i < truth.size(); i++) {
    scores.labels[to_size(truth[i])].texts++;
    scores.labels[to_size(predicted[i])].predicted++;
    scores.labels[to_size(truth[i])].correct += truth[i] == predicted[i];
    if (!scores.confusion.empty()) scores.confusion[to_size(truth[i] * labels + predicted[i])]++;
    correct += truth[i] == predicted[i];
  }
  scores.accuracy = share_of(correct, scores.texts);
  complete(scores, true);
  return scores;
}

ClassificationScores label_set_scores(std::span<const uint8_t> truth, std::span<const uint8_t> predicted,
                                      int64_t labels) {
  if (labels < 1 || truth.size() != predicted.size() || truth.size() % to_size(labels) != 0)
    fail("truth and predicted must have {} values for each text (have {} and {} values)", labels, truth.size(),
         predicted.size());
  ClassificationScores scores;
  scores.texts = std::ssize(truth) / labels;
  scores.labels.resize(to_size(labels));
  int64_t correct = 0;
  for (size_t begin = 0; begin < truth.size(); begin += to_size(labels)) {
    bool all_equal = true;
    for (size_t label = 0; label < to_size(labels); label++) {
      const bool has = truth[begin + label] != 0, is_predicted = predicted[begin + label] != 0;
      scores.labels[label].texts += has;
      scores.labels[label].predicted += is_predicted;
      scores.labels[label].correct += has && is_predicted;
      all_equal = all_equal && has == is_predicted;
    }
    correct += all_equal;
  }
  scores.accuracy = share_of(correct, scores.texts);
  complete(scores, false);
  return scores;
}

}  // namespace qkv
