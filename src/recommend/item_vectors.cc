#include "recommend/item_vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/row_linear.h"

namespace qkv {
namespace {

constexpr int64_t kItemsAtOnce = int64_t{1} << 16;  // cosines in memory at once

// Moves `next` past the ids below `id`. Returns whether it then points at `id`.
bool reaches(std::span<const int32_t>& next, int32_t id) {
  while (!next.empty() && next.front() < id) next = next.subspan(1);
  return !next.empty() && next.front() == id;
}

}  // namespace

ItemVectors::ItemVectors(const Transformer<float>& model)
    : weight_(model.output().weight()), scale_(to_size(weight_.shape[0])) {
  parallel_blocks(items(), 1024, [&](int64_t begin, int64_t end) {
    std::vector<float> vector(to_size(width()));
    for (int64_t item = begin; item < end; item++) {
      copy(item, vector.data());
      double sum = 0;
      for (const float x : vector) sum += static_cast<double>(x) * static_cast<double>(x);
      scale_[to_size(item)] = sum > 0 ? static_cast<float>(1 / std::sqrt(sum)) : 0;
    }
  });
}

void ItemVectors::copy(int64_t item, float* to) const {
  if (const Int8Matrix& W = weight_.int8; W.values.data)
    std::transform(W.values.row(item), W.values.row(item) + width(), to, [&](int8_t x) { return W.scale[item] * x; });
  else
    std::copy_n(weight_.matrix().row(item), width(), to);
}

Matrix<float> ItemVectors::directions(std::span<const int32_t> items, Arena& arena) const {
  const Matrix<float> rows = arena.matrix<float>(std::ssize(items), width());
  for (int64_t i = 0; i < rows.rows; i++) {
    const int32_t item = items[to_size(i)];
    copy(item, rows.row(i));
    for (int64_t j = 0; j < rows.cols; j++) rows(i, j) *= scale_[to_size(item)];
  }
  return rows;
}

std::vector<ScoredToken> ItemVectors::nearest(int32_t item, std::span<const int32_t> hidden,
                                              const std::vector<int32_t>* allowed, int64_t top, Arena& arena) const {
  const Arena::Scope scope(arena);
  const Matrix<float> query = directions({&item, 1}, arena);
  const int64_t k = std::min(top, allowed ? std::ssize(*allowed) : items());
  if (k == 0) return {};
  TokenHeap heap{arena.take<ScoredToken>(k), 0, k};
  std::span<const int32_t> next_allowed;
  if (allowed) next_allowed = *allowed;
  for (int64_t begin = 0; begin < items(); begin += kItemsAtOnce) {
    const Arena::Scope block(arena);
    const int64_t end = std::min(items(), begin + kItemsAtOnce);
    const Matrix<float> products = arena.matrix<float>(1, end - begin);
    if (const Int8Matrix& W = weight_.int8; W.values.data)
      row_linear(query, Int8Matrix{W.values.row_range(begin, end), W.scale + begin, W.sums + begin}, nullptr, products,
                 arena);
    else
      row_linear<float>(query, weight_.matrix().row_range(begin, end), nullptr, products, arena);
    for (auto v = static_cast<int32_t>(begin); v < end; v++) {
      if (reaches(hidden, v) || (allowed && !reaches(next_allowed, v))) continue;
      const float cosine = products(0, v - begin) * scale_[to_size(v)];
      if (!std::isnan(cosine)) heap.add({std::clamp(cosine, -1.0f, 1.0f), v});
    }
  }
  std::sort(heap.tokens, heap.tokens + heap.size);
  return {heap.tokens, heap.tokens + heap.size};
}

int64_t candidates_for(int64_t top, double diversity) { return diversity > 0 ? std::max<int64_t>(100, 5 * top) : top; }

std::vector<ScoredToken> diversify(std::span<const ScoredToken> candidates, Matrix<const float> directions,
                                   double diversity, int64_t top) {
  constexpr double kTaken = -std::numeric_limits<double>::infinity();
  std::vector<ScoredToken> chosen;
  if (candidates.empty()) return chosen;
  const auto relevance_of = [&](const ScoredToken& candidate) {
    const double worst = static_cast<double>(candidates.back().logit);
    const double range = static_cast<double>(candidates.front().logit) - worst;
    return range > 0 ? (static_cast<double>(candidate.logit) - worst) / range : 1;
  };
  std::vector<double> relevance, similarity(candidates.size(), -1);  // similarity: the largest cosine
  for (const ScoredToken& candidate : candidates) relevance.push_back((1 - diversity) * relevance_of(candidate));
  while (std::ssize(chosen) < std::min(top, std::ssize(candidates))) {
    size_t best = 0;
    double largest = kTaken;
    for (size_t i = 0; i < candidates.size(); i++) {
      const double value = relevance[i] - (chosen.empty() ? 0 : diversity * similarity[i]);
      if (value > largest) largest = value, best = i;
    }
    chosen.push_back(candidates[best]);
    relevance[best] = kTaken;
    const float* latest = directions.row(static_cast<int64_t>(best));
    for (size_t i = 0; i < candidates.size(); i++) {
      const float* row = directions.row(static_cast<int64_t>(i));
      similarity[i] = std::max(similarity[i], std::inner_product(row, row + directions.cols, latest, 0.0));
    }
  }
  return chosen;
}

}  // namespace qkv
