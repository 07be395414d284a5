// The search for hard negatives. With vectors v_t of texts t, a row with the anchor a and the positive p gets the
// candidates n with the largest a · n that are not paired with a and satisfy
//   a · n ≤ a · p − m |a · p|,   m = relative_margin.
#pragma once

#include <cstdint>
#include <vector>

#include "core/function_ref.h"
#include "qkv/hard_negatives.h"
#include "qkv/matrix.h"

namespace qkv {

// Rows of texts, by the numbers of the texts. Those from 0 to candidates − 1 are the positives of all rows.
struct NegativeRows {
  int64_t candidates = 0;
  std::vector<int32_t> anchors = {}, positives = {};  // [rows]
  std::vector<std::vector<int32_t>> given = {};       // [rows], or empty: negatives that a row has already

  int64_t size() const { return static_cast<int64_t>(anchors.size()); }
};

struct FoundNegatives {
  std::vector<int32_t> texts = {};       // [rows, n], most similar first; −1 in a row with too few
  std::vector<float> similarities = {};  // [rows, n]: a · n
  std::vector<float> positives = {};     // [rows]: a · p
};

// vectors: [texts, d], of the anchors and the positives. Products are computed in blocks of rows, after each of which
// searched(rows of the block) is called. Equal products are ordered by the number of the text. The result does not
// depend on the number of threads.
FoundNegatives find_negatives(const NegativeRows& rows, Matrix<const float> vectors, const HardNegativeOptions& options,
                              FunctionRef<void(int64_t)> searched);

}  // namespace qkv
