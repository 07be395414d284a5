#include "analysis/heads/head_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kRecent = 3;       // newest items of a history
constexpr double kLeastRows = 0.25;  // share of the rows for which the score of a role is defined

// ---- Where a score is defined

bool everywhere(AttentionPart, RunKind) { return true; }
bool of_self(AttentionPart part, RunKind) { return part != AttentionPart::cross; }
bool of_encoder(AttentionPart part, RunKind) { return part == AttentionPart::encoder; }
bool of_text(AttentionPart, RunKind kind) { return kind != RunKind::recommender; }
bool of_predictions(AttentionPart part, RunKind) { return part != AttentionPart::encoder; }
bool of_log(AttentionPart part, RunKind kind) { return part == AttentionPart::decoder && kind == RunKind::recommender; }

// ---- The keys of row i

void add_if(bool condition, int64_t key, std::vector<int32_t>& keys) {
  if (condition) keys.push_back(static_cast<int32_t>(key));
}

template <class IsKey>
void add_seen(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys, const IsKey& is_key) {
  for (int64_t j = 0; j < axes.seen(i); j++) add_if(is_key(to_size(j)), j, keys);
}

void previous_keys(const AttentionAxes&, int64_t i, std::vector<int32_t>& keys) { add_if(i > 0, i - 1, keys); }

void next_keys(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys) {
  add_if(i + 1 < axes.seen(i), i + 1, keys);
}

void same_keys(const AttentionAxes&, int64_t i, std::vector<int32_t>& keys) { keys.push_back(static_cast<int32_t>(i)); }

void first_keys(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys) {
  add_if(i > 0 || !axes.is_self(), 0, keys);
}

void special_keys(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys) {
  add_seen(axes, i, keys, [&](size_t j) { return axes.columns().tokens[j].is_special; });
}

void punctuation_keys(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys) {
  add_seen(axes, i, keys, [&](size_t j) { return axes.columns().tokens[j].is_punctuation; });
}

void repeated_keys(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys) {
  const std::vector<TextToken>& tokens = axes.rows().tokens;
  add_seen(axes, i, keys, [&](size_t j) { return j != to_size(i) && tokens[j].key == tokens[to_size(i)].key; });
}

void induction_keys(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys) {
  const std::vector<TextToken>& tokens = axes.rows().tokens;
  add_seen(axes, i, keys,
           [&](size_t j) { return j > 0 && j <= to_size(i) && tokens[j - 1].key == tokens[to_size(i)].key; });
}

void predicted_keys(const AttentionAxes& axes, int64_t i, std::vector<int32_t>& keys) {
  if (std::cmp_greater_equal(i, axes.text.label_tokens.size())) return;
  const TextToken& predicted = axes.text.label_tokens[to_size(i)];
  if (predicted.is_special) return;
  add_seen(axes, i, keys, [&](size_t j) { return axes.columns().tokens[j].key == predicted.key; });
}

void recent_keys(const AttentionAxes&, int64_t i, std::vector<int32_t>& keys) {
  for (int64_t j = std::max<int64_t>(0, i + 1 - kRecent); j <= i; j++) add_if(true, j, keys);
}

constexpr TokenScore kTokenScores[] = {
    {"previous", "weight on the token before", "token before", of_self, previous_keys},
    {"next", "weight on the token after", "token after", of_encoder, next_keys},
    {"same", "weight on the token itself", "token itself", of_self, same_keys},
    {"first", "weight on the first token", "first token", everywhere, first_keys},
    {"special", "weight on the tokens around a text, such as <s> and </s>", "special tokens", of_text, special_keys},
    {"punctuation", "weight on punctuation", "punctuation", of_text, punctuation_keys},
    {"repeated", "weight on other occurrences of the token", "same token elsewhere", of_self, repeated_keys},
    {"induction", "weight on the tokens after earlier occurrences of the token", "induction", of_self, induction_keys},
    {"copying", "weight on tokens equal to the one that is predicted", "token to predict", of_predictions,
     predicted_keys},
    {"recent", "weight on the three newest items", "newest items", of_log, recent_keys},
};

// ---- The shape of a row

double mean_distance(std::span<const float> weights, int64_t i) {
  double sum = 0;
  for (size_t j = 0; j < weights.size(); j++)
    sum += static_cast<double>(weights[j]) * static_cast<double>(std::abs(static_cast<int64_t>(j) - i));
  return sum;
}

double spread(std::span<const float> weights, int64_t) {
  double total = 0, mean = 0, squares = 0;
  for (size_t j = 0; j < weights.size(); j++) {
    const double w = static_cast<double>(weights[j]), at = static_cast<double>(j);
    total += w, mean += w * at, squares += w * at * at;
  }
  if (total == 0) return 0;
  return std::sqrt(std::max(0.0, squares / total - mean / total * (mean / total)));
}

double entropy(std::span<const float> weights, int64_t) {
  double sum = 0;
  for (const float w : weights)
    if (w > 0) sum -= static_cast<double>(w) * std::log(static_cast<double>(w));
  return sum;
}

constexpr ShapeScore kShapeScores[] = {
    {"distance", "mean distance of keys from the row, in tokens", mean_distance},
    {"spread", "standard deviation of the places of keys, in tokens", spread},
    {"entropy", "entropy of the weights, in nats", entropy},
};

}  // namespace

std::span<const TokenScore> token_scores() { return kTokenScores; }
std::span<const ShapeScore> shape_scores() { return kShapeScores; }

const HeadScore* find_score(const HeadReport& report, std::string_view name) {
  const auto found = std::ranges::find(report.scores, name, &HeadScore::name);
  return found == report.scores.end() ? nullptr : &*found;
}

const HeadScore* find_role_score(const HeadReport& report, const TokenScore& score) {
  const HeadScore *found = find_score(report, score.name), *all = find_score(report, "entropy");
  if (!found || static_cast<double>(found->rows) < kLeastRows * static_cast<double>(all->rows)) return nullptr;
  return found;
}

TokenKeys::TokenKeys(const AttentionAxes& axes, RunKind kind) {
  for (const TokenScore& score : kTokenScores) {
    Rows& rows = rows_.emplace_back();
    if (axes.columns().ids.empty() || !score.applies(axes.part, kind)) continue;
    for (int64_t i = 0; i < std::ssize(axes.rows().ids); i++) {
      score.keys(axes, i, rows.keys);
      const size_t count = rows.keys.size() - rows.offsets.back();
      rows.offsets.push_back(rows.keys.size());
      if (count == 0) continue;
      rows.uniform += {static_cast<double>(count) / static_cast<double>(axes.seen(i)), 1};
    }
  }
}

RowSum TokenKeys::of(size_t score, Matrix<const float> A) const {
  const Rows& rows = rows_[score];
  RowSum sum;
  sum.rows = rows.uniform.rows;
  for (size_t i = 0; i + 1 < rows.offsets.size(); i++)
    for (size_t k = rows.offsets[i]; k < rows.offsets[i + 1]; k++)
      sum.sum += static_cast<double>(A(static_cast<int64_t>(i), rows.keys[k]));
  return sum;
}

RowSum shape_sum(const ShapeScore& score, const AttentionAxes& axes, Matrix<const float> A) {
  RowSum sum;
  for (int64_t i = 0; i < A.rows; i++) sum += {score.value({A.row(i), to_size(axes.seen(i))}, i), 1};
  return sum;
}

RowSum uniform_shape_sum(const ShapeScore& score, const AttentionAxes& axes) {
  RowSum sum;
  std::vector<float> weights;
  for (int64_t i = 0; i < std::ssize(axes.rows().ids); i++) {
    weights.assign(to_size(axes.seen(i)), 1 / static_cast<float>(axes.seen(i)));
    sum += {score.value(weights, i), 1};
  }
  return sum;
}

std::vector<HeadScoreInfo> head_scores() {
  std::vector<HeadScoreInfo> infos;
  for (const TokenScore& score : kTokenScores) infos.push_back({score.name, score.meaning});
  for (const ShapeScore& score : kShapeScores) infos.push_back({score.name, score.meaning});
  return infos;
}

}  // namespace qkv
