#include "decode/key_value_cache.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/to_size.h"
#include "qkv/threads.h"

namespace qkv {

namespace {

// Returns caches for the keys and values of all layers, next to each other in memory. The size is rounded up, so that
// later allocations begin at one of few addresses whatever the batch, and unneeded rows are never touched.
std::vector<Layer<float>::Cache> self_caches(const Transformer<float>& model, int64_t rows, Arena& arena) {
  constexpr int64_t kMostRounded = int64_t{64} << 20;  // floats
  int64_t width = 0;
  for (const auto& layer : model.decoder().layers()) width += layer.self_attention().keys_values_width();
  const auto rounded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
  const Matrix<float> all = arena.matrix<float>(rounded * width <= kMostRounded ? rounded : rows, width);
  std::vector<Layer<float>::Cache> caches;
  int64_t begin = 0;
  for (const auto& layer : model.decoder().layers()) {
    const int64_t end = begin + layer.self_attention().keys_values_width();
    caches.push_back({all.row_range(0, rows).col_range(begin, end), {}});
    begin = end;
  }
  return caches;
}

// Returns the sequences from `first` on that are encoded together. More rows would not make the products faster, but
// would take more memory.
Packed part_of(const Packed& all, int64_t first) {
  const int64_t most_tokens = 192 * threads();
  Packed part;
  for (int64_t s = first; s < all.sequences(); s++) {
    const auto sequence = all.sequence(s);
    if (part.tokens() > 0 && part.tokens() + std::ssize(sequence) > most_tokens) break;
    part.append(sequence);
  }
  return part;
}

// Computes keys and values of the encoder's output, for a few sequences at a time.
void fill_cross(const Transformer<float>& model, const Packed& sources, std::vector<Layer<float>::Cache>& caches,
                Context& c) {
  for (auto& cache : caches) cache.cross = c.arena.matrix<float>(sources.tokens(), cache.self.cols);
  for (int64_t first = 0; first < sources.sequences();) {
    const Arena::Scope scope(c.arena);
    const Packed part = part_of(sources, first);
    const int64_t row = sources.offsets[to_size(first)];
    std::vector<Layer<float>::Cache> rows = caches;
    for (auto& cache : rows) cache.cross = cache.cross.row_range(row, row + part.tokens());
    model.fill_cross(model.encode(part, c), rows, c);
    first += part.sequences();
  }
}

}  // namespace

KeyValueCache::KeyValueCache(const Ensemble& models, const Packed& sources, int64_t beam, int64_t capacity, Context& c)
    : models_(models),
      beam_(beam),
      sequences_(sources.sequences()),
      source_offsets_(sources.offsets),
      slots_(to_size(sequences_ * beam)),
      users_(to_size(sequences_ * beam * capacity)),
      given_up_(to_size(sequences_)) {
  for (size_t m = 0; m < models.size(); m++) caches_.push_back(self_caches(models[m], std::ssize(users_), c.arena));
  for (size_t m = 0; m < models.size(); m++) fill_cross(models[m], sources, caches_[m], c);
}

void KeyValueCache::branch(int64_t sequence, std::span<const int32_t> parents, std::span<int32_t> children) {
  const int32_t first = first_slot(sequence);
  const std::span<std::vector<int32_t>> slots = std::span(slots_).subspan(to_size(first), to_size(beam_));
  std::vector<std::vector<int32_t>> next(slots.size());
  for (size_t i = 0; i < parents.size(); i++) {
    next[i] = slots[to_size(parents[i] - first)];
    for (const int32_t row : next[i]) users_[to_size(row)]++;
    children[i] = first + static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < slots.size(); i++) {
    for (const int32_t row : slots[i])
      if (--users_[to_size(row)] == 0) given_up_[to_size(sequence)].push_back(row);
    slots[i] = std::move(next[i]);
  }
}

void KeyValueCache::begin_step() {
  for (std::vector<int32_t>* list :
       {&positions_, &new_rows_, &self_rows_, &self_begin_, &self_end_, &cross_begin_, &cross_end_})
    list->clear();
  for (std::vector<int32_t>& rows : given_up_) {
    free_.insert(free_.end(), rows.begin(), rows.end());
    rows.clear();
  }
}

void KeyValueCache::add(int64_t sequence, int32_t slot) {
  std::vector<int32_t>& rows = slots_[to_size(slot)];
  positions_.push_back(static_cast<int32_t>(rows.size()));
  if (free_.empty()) free_.push_back(rows_++);
  const int32_t row = free_.back();
  free_.pop_back();
  users_[to_size(row)] = 1;
  rows.push_back(row);
  new_rows_.push_back(row);
  self_begin_.push_back(static_cast<int32_t>(self_rows_.size()));
  self_rows_.insert(self_rows_.end(), rows.begin(), rows.end());
  self_end_.push_back(static_cast<int32_t>(self_rows_.size()));
  cross_begin_.push_back(source_offsets_[to_size(sequence)]);
  cross_end_.push_back(source_offsets_[to_size(sequence) + 1]);
}

Matrix<float> KeyValueCache::step(size_t m, std::span<const int32_t> ids, Context& c) {
  return models_[m].step({ids,
                          positions_,
                          new_rows_,
                          {self_rows_.data(), self_begin_.data(), self_end_.data()},
                          {nullptr, cross_begin_.data(), cross_end_.data()}},
                         caches_[m], c);
}

void KeyValueCache::fill(int64_t tokens) {
  for (std::vector<int32_t>& rows : slots_) {
    rows.resize(to_size(tokens));
    std::iota(rows.begin(), rows.end(), rows_);
    rows_ += static_cast<int32_t>(tokens);
  }
  for (const LayerCaches& caches : caches_)
    for (const auto& cache : caches)
      for (int64_t r = 0; r < cache.self.rows; r++) std::fill_n(cache.self.row(r), cache.self.cols, 0.0f);
}

}  // namespace qkv
