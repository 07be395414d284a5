// The scores of heads: means over the rows of an attention. A token score is the weight on the keys of a set,
//   1/|I| Σ_{i ∈ I} Σ_{j ∈ K(i)} A_ij,   I = rows whose set K(i) is not empty,
// and a shape score is a mean over all rows of a function of the row. head_scores.cc has one entry for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/heads/attention_pass.h"
#include "qkv/heads.h"
#include "qkv/matrix.h"

namespace qkv {

// The keys that row i of a text is scored for: appends them, in increasing order, among the keys that the row sees.
using KeysOfRow = void (*)(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys);

struct TokenScore {
  std::string_view name, meaning, role;  // role: what a head with a high score does
  bool (*applies)(AttentionPart part, RunKind kind);
  KeysOfRow keys;
};

// Returns the value of a row, its weights on the keys that it sees. i: its place.
using ValueOfRow = double (*)(std::span<const float> weights, int64_t i);

struct ShapeScore {
  std::string_view name, meaning;
  ValueOfRow value;
};

std::span<const TokenScore> token_scores();
std::span<const ShapeScore> shape_scores();

inline constexpr std::string_view kAlignedWord = "aligned word";  // the role of a head that agrees with alignments

// Returns how far a value lies from `base` to 1.
constexpr double strength_of(double value, double base) { return base < 1 ? (value - base) / (1 - base) : 0; }

// Returns a score of a head by its name, or none.
const HeadScore* find_score(const HeadReport& report, std::string_view name);
// Returns a token score of a head if it is defined for at least a quarter of the rows, otherwise none.
const HeadScore* find_role_score(const HeadReport& report, const TokenScore& score);

// A sum over rows, and their number.
struct RowSum {
  double sum = 0;
  int64_t rows = 0;

  RowSum& operator+=(const RowSum& other) {
    sum += other.sum;
    rows += other.rows;
    return *this;
  }
  double mean() const { return rows > 0 ? sum / static_cast<double>(rows) : 0; }
};

// The keys of the token scores of one text and part, which are the same for all layers and heads.
class TokenKeys {
 public:
  TokenKeys(const AttentionAxes& axes, RunKind kind);

  // Returns the sums of token score `score` for the weights A, and for uniform attention.
  RowSum of(size_t score, Matrix<const float> A) const;
  RowSum uniform(size_t score) const { return rows_[score].uniform; }

 private:
  struct Rows {
    std::vector<size_t> offsets = {0};  // row i has keys[offsets[i]] … keys[offsets[i + 1] − 1]
    std::vector<int32_t> keys = {};
    RowSum uniform = {};
  };
  std::vector<Rows> rows_;  // by score
};

// Returns the sum of a shape score for weights, and for uniform attention over the keys that each row sees.
RowSum shape_sum(const ShapeScore& score, const AttentionAxes& axes, Matrix<const float> A);
RowSum uniform_shape_sum(const ShapeScore& score, const AttentionAxes& axes);

}  // namespace qkv
