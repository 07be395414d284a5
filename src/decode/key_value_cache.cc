#include "decode/key_value_cache.h"

#include <algorithm>
#include <numeric>

namespace qkv {

KeyValueCache::KeyValueCache(const Ensemble& models, const Packed& sources, int64_t beam, int64_t capacity, Context& c)
    : models_(models),
      beam_(beam),
      sequences_(sources.sequences()),
      source_offsets_(sources.offsets),
      slots_(static_cast<size_t>(sequences_ * beam)),
      users_(static_cast<size_t>(sequences_ * beam * capacity)),
      given_up_(static_cast<size_t>(sequences_)) {
  for (size_t m = 0; m < models.size(); m++) {
    const Matrix<float> memory = models[m].encode(sources, c);
    LayerCaches caches;
    for (const auto& layer : models[m].decoder().layers()) {
      const int64_t width = layer.self_attention().keys_values_width();
      caches.push_back({c.arena.matrix<float>(std::ssize(users_), width), c.arena.matrix<float>(memory.rows, width)});
    }
    models[m].fill_cross(memory, caches, c);
    caches_.push_back(std::move(caches));
  }
}

void KeyValueCache::branch(int64_t sequence, std::span<const int32_t> parents, std::span<int32_t> children) {
  const int32_t first = first_slot(sequence);
  const std::span<std::vector<int32_t>> slots =
      std::span(slots_).subspan(static_cast<size_t>(first), static_cast<size_t>(beam_));
  std::vector<std::vector<int32_t>> next(slots.size());
  for (size_t i = 0; i < parents.size(); i++) {
    next[i] = slots[static_cast<size_t>(parents[i] - first)];
    for (const int32_t row : next[i]) users_[static_cast<size_t>(row)]++;
    children[i] = first + static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < slots.size(); i++) {
    for (const int32_t row : slots[i])
      if (--users_[static_cast<size_t>(row)] == 0) given_up_[static_cast<size_t>(sequence)].push_back(row);
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
  std::vector<int32_t>& rows = slots_[static_cast<size_t>(slot)];
  positions_.push_back(static_cast<int32_t>(rows.size()));
  if (free_.empty()) free_.push_back(rows_++);
  const int32_t row = free_.back();
  free_.pop_back();
  users_[static_cast<size_t>(row)] = 1;
  rows.push_back(row);
  new_rows_.push_back(row);
  self_begin_.push_back(static_cast<int32_t>(self_rows_.size()));
  self_rows_.insert(self_rows_.end(), rows.begin(), rows.end());
  self_end_.push_back(static_cast<int32_t>(self_rows_.size()));
  cross_begin_.push_back(source_offsets_[static_cast<size_t>(sequence)]);
  cross_end_.push_back(source_offsets_[static_cast<size_t>(sequence) + 1]);
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
    rows.resize(static_cast<size_t>(tokens));
    std::iota(rows.begin(), rows.end(), rows_);
    rows_ += static_cast<int32_t>(tokens);
  }
  for (const LayerCaches& caches : caches_)
    for (const auto& cache : caches)
      for (int64_t r = 0; r < cache.self.rows; r++) std::fill_n(cache.self.row(r), cache.self.cols, 0.0f);
}

}  // namespace qkv
