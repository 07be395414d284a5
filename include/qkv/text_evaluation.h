// The quality of a classifier, a cross-encoder or an embedder on a file of rows. docs/classify.md, docs/embed.md.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "qkv/placement.h"

namespace [[gnu::visibility("default")]] qkv {

struct TextEvaluationOptions {
  // Names or numbers of the columns of texts and of what they are compared with; empty: usual names, or all columns. The
  // files are those of training: docs/train-classifiers.md, docs/train-embedders.md.
  std::vector<std::string> columns = {};
  std::string label_separator = "";  // between several labels in a field; "": that of the run's training
  // Whether consecutive rows with the same first text are ranked, by a run that predicts numbers. A run that was trained
  // to rank always does.
  bool ranking = false;
  Placement placement = {};
};

struct TextEvaluation {
  std::string compared;  // "labels", "sets of labels", "numbers", "rankings", "similarities" or "pairs"
  int64_t rows = 0;
  int64_t cut = 0;                                        // texts that were truncated
  std::vector<std::pair<std::string, double>> measures;  // by name, as training reports them

  // A row for each label of the run, if labels or sets of labels are compared.
  struct Label {
    std::string name;
    int64_t rows = 0, predicted = 0, correct = 0;  // that have the label, for which it is predicted, and both
    double precision = 0, recall = 0, f1 = 0;
  };
  std::vector<Label> labels = {};
  // [labels, labels] of at most 256 labels, if labels are compared: how many rows of one label (the row) are taken for
  // another (the column).
  std::vector<int64_t> confusion = {};
};

// Compares what a run predicts for the rows of a file with what they have. A row has one text or two and, for a
// classifier, a label, labels or a number; for an embedder two texts and a score, or an anchor and its positive.
// Measures are those that training prints for dev rows. Throws Error, naming the run or the line of the file, for a run
// of another kind, a label that the run lacks, text instead of a number, an empty text, and options that do not fit.
TextEvaluation evaluate_texts(const std::string& run, const std::string& rows,
                              const TextEvaluationOptions& options = {});

// Returns an object with the fields of TextEvaluation; measures are members of their own.
std::string to_json(const TextEvaluation& evaluation);

}  // namespace qkv
