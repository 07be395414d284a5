// The quality of an embedder on dev rows: the rank correlation of similarities and scores, or how well anchors find
// their positives among all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/arena.h"
#include "qkv/embedder_training.h"
#include "qkv/matrix.h"
#include "qkv/training.h"
#include "train/tasks/task.h"

namespace qkv {

inline constexpr int64_t kAnchorRows = 256;  // anchors whose similarities with all positives are in memory at once

// The dev rows, without their texts.
struct DevRows {
  int64_t rows = 0, columns = 0;        // N, and the texts of a row
  std::vector<double> scores = {};      // [N], or empty: retrieval
  std::vector<int32_t> anchors = {};    // [N]: of retrieval, the first row with the same anchor
  std::vector<int32_t> positives = {};  // [N]: the same for positives
  // [N]: of retrieval, the first row whose positive is the anchor, or −1
  std::vector<int32_t> as_positive = {};

  // Sets the last three. texts: column j of row i is texts[j N + i].
  void find_equal(const std::vector<std::string>& texts);
  // Returns the measure that selects the best weights: Spearman's correlation, MRR@10, or the loss of rows of one text.
  Metric metric() const;
};

// Returns the measures of the vectors [columns N, d]: the metric is the first. With widths, also the first measure of
// the first components. Returns nothing for rows of one text.
std::vector<EvaluationReport::Measure> vector_measures(const DevRows& rows, Matrix<const float> vectors,
                                                       Similarity similarity, const std::vector<int64_t>& widths,
                                                       Arena& arena);

}  // namespace qkv
