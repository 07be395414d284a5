#include "train/negatives/negative_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/arena.h"
#include "core/random.h"
#include "core/to_size.h"
#include "ops/row_linear.h"
#include "ops/rows.h"
#include "ops/top_k_logits.h"

namespace qkv {
namespace {

constexpr int64_t kMostRows = 768;       // of a block
constexpr int64_t kMostFound = 1 << 18;  // texts that are kept for a block

// The texts that some row pairs with each text, in either order.
using Partners = std::vector<std::vector<int32_t>>;

Partners partners_of(const NegativeRows& rows, int64_t texts) {
  Partners partners(to_size(texts));
  for (size_t i = 0; i < rows.anchors.size(); i++) {
    partners[to_size(rows.anchors[i])].push_back(rows.positives[i]);
    partners[to_size(rows.positives[i])].push_back(rows.anchors[i]);
  }
  return partners;
}

// Returns the candidates that are no negatives of a row, in increasing order.
std::vector<int32_t> excluded_from(const NegativeRows& rows, const Partners& partners, size_t row) {
  std::vector<int32_t> texts = partners[to_size(rows.anchors[row])];
  texts.push_back(rows.anchors[row]);
  if (!rows.given.empty()) texts.insert(texts.end(), rows.given[row].begin(), rows.given[row].end());
  std::erase_if(texts, [&](int32_t text) { return text >= rows.candidates; });
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

float limit_of(float positive, double margin) {
  return static_cast<float>(static_cast<double>(positive) - margin * std::abs(static_cast<double>(positive)));
}

// Returns which of `found` texts, most similar first, become the negatives of a row; nothing if there are too few.
std::vector<int64_t> chosen_places(int64_t found, const HardNegativeOptions& options, uint64_t row) {
  const int64_t n = options.negatives_per_row, left = found - options.skip_nearest;
  if (left < n) return {};
  std::vector<int64_t> places(to_size(options.sample_from > 0 ? std::min(left, options.sample_from) : n));
  std::iota(places.begin(), places.end(), options.skip_nearest);
  if (options.sample_from > 0) Random(options.seed, Stream::negatives, row).shuffle(places);
  places.resize(to_size(n));
  std::ranges::sort(places);
  return places;
}

class NegativeSearch {
 public:
  NegativeSearch(const NegativeRows& rows, Matrix<const float> vectors, const HardNegativeOptions& options)
      : rows_(rows),
        vectors_(vectors),
        options_(options),
        kept_(
            std::min(rows.candidates, options.skip_nearest + std::max(options.negatives_per_row, options.sample_from))),
        partners_(partners_of(rows, vectors.rows)) {
    const size_t all = to_size(rows.size() * options.negatives_per_row);
    found_.texts.assign(all, -1);
    found_.similarities.assign(all, 0);
    found_.positives.resize(to_size(rows.size()));
  }

  int64_t rows_of_block() const { return std::clamp<int64_t>(kMostFound / kept_, 1, kMostRows); }
  void search(int64_t begin, int64_t end);
  FoundNegatives take() { return std::move(found_); }

 private:
  Matrix<const float> vectors_of(const std::vector<int32_t>& texts, int64_t begin, int64_t end) {
    const Matrix<float> v = arena_.matrix<float>(end - begin, vectors_.cols);
    gather_rows<float>(vectors_, std::span(texts).subspan(to_size(begin), to_size(end - begin)), v);
    return v;
  }
  void keep(int64_t row, const TopKLogits& best, int64_t place);

  const NegativeRows& rows_;
  const Matrix<const float> vectors_;
  const HardNegativeOptions& options_;
  const int64_t kept_;  // texts that are kept for a row
  const Partners partners_;
  FoundNegatives found_;
  Arena arena_;
};

void NegativeSearch::search(int64_t begin, int64_t end) {
  const Arena::Scope scope(arena_);
  const Matrix<const float> anchors = vectors_of(rows_.anchors, begin, end);
  row_products(anchors, vectors_of(rows_.positives, begin, end), &found_.positives[to_size(begin)], arena_);
  std::vector<float> limits;
  std::vector<std::vector<int32_t>> excluded;
  for (auto row = to_size(begin); row < to_size(end); row++) {
    limits.push_back(limit_of(found_.positives[row], options_.relative_margin));
    excluded.push_back(excluded_from(rows_, partners_, row));
  }
  const std::vector<std::span<const int32_t>> hidden(excluded.begin(), excluded.end());
  const TopKLogits best{arena_.matrix<float>(end - begin, kept_), arena_.matrix<int32_t>(end - begin, kept_)};
  top_k_logits(anchors, vectors_.row_range(0, rows_.candidates), nullptr, {hidden, limits}, best, arena_);
  for (int64_t row = begin; row < end; row++) keep(row, best, row - begin);
}

void NegativeSearch::keep(int64_t row, const TopKLogits& best, int64_t place) {
  const std::span<const int32_t> texts(best.tokens.row(place), to_size(kept_));
  const int64_t found = std::ranges::find(texts, -1) - texts.begin();
  int64_t to = row * options_.negatives_per_row;
  for (const int64_t i : chosen_places(found, options_, static_cast<uint64_t>(row))) {
    found_.texts[to_size(to)] = texts[to_size(i)];
    found_.similarities[to_size(to++)] = best.logits(place, i);
  }
}

}  // namespace

FoundNegatives find_negatives(const NegativeRows& rows, Matrix<const float> vectors, const HardNegativeOptions& options,
                              FunctionRef<void(int64_t)> searched) {
  NegativeSearch search(rows, vectors, options);
  const int64_t block = search.rows_of_block();
  for (int64_t begin = 0; begin < rows.size(); begin += block) {
    const int64_t end = std::min(rows.size(), begin + block);
    search.search(begin, end);
    searched(end - begin);
  }
  return search.take();
}

}  // namespace qkv
