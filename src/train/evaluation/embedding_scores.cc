#include "train/evaluation/embedding_scores.h"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>

#include "core/to_size.h"
#include "eval/number_scores.h"
#include "eval/retrieval_scores.h"
#include "ops/pooling.h"
#include "ops/row_linear.h"
#include "ops/rows.h"

namespace qkv {
namespace {

// Returns a copy of rows, normalized for cosines.
Matrix<float> prepared(Matrix<const float> v, Similarity similarity, Arena& arena) {
  const Matrix<float> copy = arena.matrix<float>(v.rows, v.cols);
  copy_rows<float>(v, copy);
  if (similarity == Similarity::cosine) normalize_rows<float>(copy);
  return copy;
}

// The similarities of anchors and positives; with negatives, those of anchors and negatives are subtracted.
double correlation(const DevRows& rows, Matrix<const float> v, Similarity similarity, Arena& arena) {
  const Arena::Scope scope(arena);
  const int64_t N = rows.rows;
  const Matrix<const float> all = prepared(v, similarity, arena), a = all.row_range(0, N);
  std::vector<double> found(to_size(N));
  std::vector<float> products(to_size(N));
  const auto add = [&](int64_t column, double sign) {
    row_products(a, all.row_range(column * N, (column + 1) * N), products.data(), arena);
    for (size_t i = 0; i < found.size(); i++) found[i] += sign * static_cast<double>(products[i]);
  };
  add(1, 1);
  if (rows.columns > 2) add(2, -1);
  return spearman(found, rows.scores);
}

// Gives equal ranks, of which each counts the others, an order.
void separate(std::vector<int64_t>& ranks) {
  std::ranges::sort(ranks);
  for (size_t begin = 0; begin < ranks.size();) {
    const auto end = static_cast<size_t>(std::ranges::upper_bound(ranks, ranks[begin]) - ranks.begin());
    for (size_t i = begin; i < end; i++) ranks[i] -= static_cast<int64_t>(end - 1 - i);
    begin = end;
  }
}

// Each anchor and each positive counts once; the positives of all rows with an anchor are relevant to it. A positive
// that is the anchor itself is not a candidate, because every model would find it first.
RetrievalScores retrieval(const DevRows& rows, Matrix<const float> v, Similarity similarity, Arena& arena) {
  const Arena::Scope scope(arena);
  std::vector<int32_t> queries, candidates;  // rows of v
  std::vector<int64_t> candidate_of(to_size(rows.rows));
  std::vector<std::vector<int64_t>> relevant(to_size(rows.rows));  // of each query, by its row
  for (int32_t i = 0; i < rows.rows; i++) {
    if (rows.anchors[to_size(i)] == i) queries.push_back(i);
    if (rows.positives[to_size(i)] != i) continue;
    candidate_of[to_size(i)] = std::ssize(candidates);
    candidates.push_back(static_cast<int32_t>(rows.rows) + i);
  }
  for (size_t i = 0; i < relevant.size(); i++)
    relevant[to_size(rows.anchors[i])].push_back(candidate_of[to_size(rows.positives[i])]);
  const auto gathered = [&](const std::vector<int32_t>& from) {
    const Matrix<float> m = arena.matrix<float>(std::ssize(from), v.cols);
    gather_rows<float>(v, from, m);
    if (similarity == Similarity::cosine) normalize_rows<float>(m);
    return m;
  };
  const Matrix<const float> a = gathered(queries), b = gathered(candidates);
  std::vector<int64_t> ranks, offsets = {0};
  for (int64_t first = 0; first < a.rows; first += kAnchorRows) {
    const Arena::Scope block(arena);
    const int64_t end = std::min(a.rows, first + kAnchorRows);
    const Matrix<float> s = arena.matrix<float>(end - first, b.rows);
    row_linear<float>(a.row_range(first, end), b, nullptr, s, arena);
    for (int64_t i = 0; i < s.rows; i++) {
      std::vector<int64_t>& positives = relevant[to_size(queries[to_size(first + i)])];
      std::ranges::sort(positives);
      positives.erase(std::unique(positives.begin(), positives.end()), positives.end());
      const int32_t itself = rows.as_positive[to_size(queries[to_size(first + i)])];
      const int64_t hidden = itself < 0 ? -1 : candidate_of[to_size(itself)];
      if (hidden >= 0 && std::ranges::find(positives, hidden) == positives.end())
        s(i, hidden) = -std::numeric_limits<float>::infinity();
      std::vector<int64_t> found;
      for (const int64_t candidate : positives) found.push_back(rank_of({s.row(i), to_size(s.cols)}, candidate));
      separate(found);
      ranks.insert(ranks.end(), found.begin(), found.end());
      offsets.push_back(std::ssize(ranks));
    }
  }
  return retrieval_scores(ranks, offsets);
}

std::vector<int32_t> first_equal(std::span<const std::string> texts) {
  std::unordered_map<std::string_view, int32_t> first;
  std::vector<int32_t> result;
  for (const std::string& text : texts)
    result.push_back(first.emplace(text, static_cast<int32_t>(result.size())).first->second);
  return result;
}

}  // namespace

void DevRows::find_equal(const std::vector<std::string>& texts) {
  const size_t N = to_size(rows);
  anchors = first_equal(std::span(texts).first(N));
  positives = first_equal(std::span(texts).subspan(N, N));
  std::unordered_map<std::string_view, int32_t> row_of;  // of each positive
  for (size_t i = 0; i < N; i++) row_of.emplace(texts[N + i], static_cast<int32_t>(i));
  as_positive.clear();
  for (size_t i = 0; i < N; i++) {
    const auto found = row_of.find(texts[i]);
    as_positive.push_back(found == row_of.end() ? -1 : found->second);
  }
}

Metric DevRows::metric() const {
  if (columns < 2) return {"loss", false};
  return {scores.empty() ? "MRR@10" : "spearman"};
}

std::vector<EvaluationReport::Measure> vector_measures(const DevRows& rows, Matrix<const float> vectors,
                                                       Similarity similarity, const std::vector<int64_t>& widths,
                                                       Arena& arena) {
  if (rows.columns < 2) return {};
  const bool is_scored = !rows.scores.empty();
  const std::string name = rows.metric().name;
  std::vector<EvaluationReport::Measure> measures;
  if (is_scored) {
    measures.push_back({name, correlation(rows, vectors, similarity, arena), 4});
  } else {
    const RetrievalScores scores = retrieval(rows, vectors, similarity, arena);
    measures = {{name, scores.mrr_10, 4},
                {"NDCG@10", scores.ndcg_10, 4},
                {"recall@1", scores.recall_1, 4},
                {"recall@10", scores.recall_10, 4}};
  }
  for (const int64_t width : widths) {
    if (width >= vectors.cols) continue;
    const Matrix<const float> first = vectors.col_range(0, width);
    const double value =
        is_scored ? correlation(rows, first, similarity, arena) : retrieval(rows, first, similarity, arena).mrr_10;
    measures.push_back({fmt::format("{} ({})", name, width), value, 4});
  }
  return measures;
}

}  // namespace qkv
