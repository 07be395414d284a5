#include "decode/search/key_value_cache.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/to_size.h"
#include "qkv/threads.h"

namespace qkv {

namespace {

constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max() - 2 * RowBlocks::kRows;
constexpr int64_t kGap = 64;  // bytes between matrices, at most

// Returns the number of floats of a row of keys and values in all layers.
int64_t width_of(const Transformer<float>& model) {
  int64_t width = 0;
  for (const auto& layer : model.decoder().layers()) width += layer.self_attention().keys_values_width();
  return width;
}

// Returns caches for the keys and values of all layers. Those of self-attention are next to each other in memory. Their
// size is rounded up, so that later allocations begin at one of few addresses whatever the batch, and unneeded rows are
// never touched.
std::vector<Layer<float>::Cache> layer_caches(const Transformer<float>& model, const CacheRows& rows, Arena& arena) {
  constexpr int64_t kMostRounded = int64_t{64} << 20;  // floats
  const int64_t width = width_of(model);
  const auto rounded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows.self)));
  const Matrix<float> all = arena.matrix<float>(rounded * width <= kMostRounded ? rounded : rows.self, width);
  std::vector<Layer<float>::Cache> caches;
  int64_t begin = 0;
  for (const auto& layer : model.decoder().layers()) {
    const int64_t end = begin + layer.self_attention().keys_values_width();
    caches.push_back({all.row_range(0, rows.self).col_range(begin, end), {}});
    begin = end;
  }
  for (auto& cache : caches) cache.cross = arena.matrix<float>(rows.cross, cache.self.cols);
  return caches;
}

// Returns the sequences from `first` on that are encoded together. More rows would not make the products faster, but
// would take more memory.
Packed part_of(const Packed& all, int64_t first) {
  const int64_t most_tokens = kEncodedTokens * threads();
  Packed part;
  for (int64_t s = first; s < all.sequences(); s++) {
    const auto sequence = all.sequence(s);
    if (part.tokens() > 0 && part.tokens() + std::ssize(sequence) > most_tokens) break;
    part.append(sequence);
  }
  return part;
}

// Computes keys and values of the encoder's output, a few sequences at a time. rows: those of each sequence.
void fill_cross(const Transformer<float>& model, const Packed& sources, std::span<const RowRange> rows,
                const std::vector<Layer<float>::Cache>& caches, Context& c) {
  for (int64_t first = 0; first < sources.sequences();) {
    const Arena::Scope scope(c.arena);
    const Packed part = part_of(sources, first);
    const Matrix<float> memory = model.encode(part, c);
    for (int64_t s = 0; s < part.sequences();) {  // sequences with consecutive rows together
      RowRange from{part.offsets[to_size(s)], 0}, to = rows[to_size(first + s)];
      for (s++; s < part.sequences() && rows[to_size(first + s)].begin == to.end; s++)
        to.end = rows[to_size(first + s)].end;
      from.end = part.offsets[to_size(s)];
      std::vector<Layer<float>::Cache> parts = caches;
      for (auto& cache : parts) cache.cross = cache.cross.row_range(to.begin, to.end);
      model.fill_cross(memory.row_range(from.begin, from.end), parts, c);
    }
    first += part.sequences();
  }
}

}  // namespace

int64_t cache_bytes(const Ensemble& models, const CacheRows& rows) {
  int64_t width = 0;
  for (size_t m = 0; m < models.size(); m++) width += width_of(models[m]);
  return (rows.self + rows.cross) * width * static_cast<int64_t>(sizeof(float));
}

CacheRows cache_rows(const Ensemble& models, int64_t bytes) {
  const int64_t rows = std::min(bytes / cache_bytes(models, {1, 0}), kMostRows);
  return {rows, rows};
}

size_t reserved_for(const Ensemble& models, const CacheRows& rows) {
  int64_t matrices = 0;
  for (size_t m = 0; m < models.size(); m++) matrices += 1 + std::ssize(models[m].decoder().layers());
  return to_size(cache_bytes(models, rows * 2) + matrices * kGap);  // sizes may be rounded up
}

KeyValueCache::KeyValueCache(const Ensemble& models, const CacheRows& rows, Arena& memory)
    : models_(models), memory_(memory), cross_pool_(rows.cross) {
  for (size_t m = 0; m < models.size(); m++) caches_.push_back(layer_caches(models[m], rows, memory));
}

std::vector<KeyValueCache::Sequence> KeyValueCache::open(const Packed& sources, std::span<const int64_t> beams,
                                                         Context& c) {
  std::vector<Sequence> sequences;
  std::vector<RowRange> rows;
  for (int64_t s = 0; s < sources.sequences(); s++) {
    rows.push_back(cross_pool_.take(std::ssize(sources.sequence(s))));
    sequences.push_back({rows.back(), std::vector<std::vector<int32_t>>(to_size(beams[to_size(s)]))});
  }
  for (size_t m = 0; m < models_.size(); m++) fill_cross(models_[m], sources, rows, caches_[m], c);
  return sequences;
}

void KeyValueCache::close(Sequence& sequence) {
  branch(sequence, {});
  self_pool_.give_back(sequence.given_up);
  cross_pool_.give_back(sequence.cross);
  sequence = {};
}

void KeyValueCache::branch(Sequence& sequence, std::span<const int32_t> parents) {
  std::vector<std::vector<int32_t>> next(sequence.slots.size());
  for (size_t i = 0; i < parents.size(); i++) {
    next[i] = sequence.slots[to_size(parents[i])];
    for (const int32_t row : next[i]) users_[to_size(row)]++;
  }
  for (const std::vector<int32_t>& rows : sequence.slots)
    for (const int32_t row : rows)
      if (--users_[to_size(row)] == 0) sequence.given_up.push_back(row);
  sequence.slots = std::move(next);
}

void KeyValueCache::begin_step() {
  for (std::vector<int32_t>* list :
       {&positions_, &new_rows_, &self_rows_, &self_begin_, &self_end_, &cross_begin_, &cross_end_})
    list->clear();
}

int32_t KeyValueCache::new_row() {
  const int32_t row = self_pool_.take();
  if (self_pool_.rows() > std::ssize(users_)) users_.resize(to_size(self_pool_.rows()));
  users_[to_size(row)] = 1;
  return row;
}

void KeyValueCache::add(Sequence& sequence, int32_t slot) {
  self_pool_.give_back(sequence.given_up);
  sequence.given_up.clear();
  std::vector<int32_t>& rows = sequence.slots[to_size(slot)];
  positions_.push_back(static_cast<int32_t>(rows.size()));
  rows.push_back(new_row());
  new_rows_.push_back(rows.back());
  self_begin_.push_back(static_cast<int32_t>(self_rows_.size()));
  self_rows_.insert(self_rows_.end(), rows.begin(), rows.end());
  self_end_.push_back(static_cast<int32_t>(self_rows_.size()));
  cross_begin_.push_back(static_cast<int32_t>(sequence.cross.begin));
  cross_end_.push_back(static_cast<int32_t>(sequence.cross.end));
}

Matrix<float> KeyValueCache::step(size_t m, std::span<const int32_t> ids, Context& c) {
  return models_[m].step({ids,
                          positions_,
                          new_rows_,
                          {self_rows_.data(), self_begin_.data(), self_end_.data()},
                          {nullptr, cross_begin_.data(), cross_end_.data()}},
                         caches_[m], c);
}

void KeyValueCache::fill(Sequence& sequence, int64_t tokens) {
  for (std::vector<int32_t>& rows : sequence.slots) {
    rows.resize(to_size(tokens));
    for (int32_t& row : rows) {
      row = new_row();
      for (const LayerCaches& caches : caches_)
        for (const auto& cache : caches) std::fill_n(cache.self.row(row), cache.self.cols, 0.0f);
    }
  }
}

void KeyValueCache::trim(Clock::time_point now) {
  const auto forget = [&](Matrix<float> m, const RowRange& rows) {
    const Matrix<float> part = m.row_range(rows.begin, std::min(rows.end, m.rows));
    memory_.forget(part.data, to_size(part.rows * part.stride) * sizeof(float));
  };
  for (const RowRange& rows : self_pool_.unused(now))
    for (const LayerCaches& caches : caches_) forget(caches.front().self, rows);  // a row holds those of all layers
  for (const RowRange& rows : cross_pool_.unused(now))
    for (const LayerCaches& caches : caches_)
      for (const auto& cache : caches) forget(cache.cross, rows);
}

}  // namespace qkv
