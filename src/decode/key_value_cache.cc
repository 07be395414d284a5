#include "decode/key_value_cache.h"

#include <algorithm>

namespace qkv {

KeyValueCache::KeyValueCache(const Ensemble& models, const Packed& sources, int64_t beam, int64_t capacity, Context& c)
    : models_(models), beam_(beam), capacity_(capacity), source_offsets_(sources.offsets) {
  for (size_t m = 0; m < models.size(); m++) {
    const Matrix<float> memory = models[m].encode(sources, c);
    LayerCaches caches;
    for (const auto& layer : models[m].decoder().layers()) {
      const int64_t width = layer.self_attention().keys_values_width();
      caches.push_back({c.arena.matrix<float>(sources.sequences() * beam * capacity, width),
                        c.arena.matrix<float>(memory.rows, width)});
    }
    models[m].fill_cross(memory, caches);
    caches_.push_back(std::move(caches));
  }
}

// The first child of a parent goes on in its slot; further ones copy its tokens into a slot that is free.
void KeyValueCache::branch(int64_t sequence, std::span<const int32_t> parents, int64_t t, std::span<int32_t> children) {
  const int32_t first = first_slot(sequence);
  std::vector<char> used(static_cast<size_t>(beam_), 0), has_child(used);
  for (const int32_t parent : parents) used[static_cast<size_t>(parent - first)] = 1;
  for (size_t i = 0; i < parents.size(); i++) {
    const int32_t parent = parents[i];
    children[i] = parent;
    char& taken = has_child[static_cast<size_t>(parent - first)];
    if (taken) {
      const auto free = std::find(used.begin(), used.end(), 0);
      *free = 1;
      children[i] = first + static_cast<int32_t>(free - used.begin());
      for (const LayerCaches& caches : caches_)
        for (const auto& cache : caches)
          std::copy_n(cache.self.row(parent * capacity_), t * cache.self.cols, cache.self.row(children[i] * capacity_));
    }
    taken = 1;
  }
}

void KeyValueCache::begin_step() {
  for (std::vector<int32_t>* list :
       {&positions_, &new_rows_, &q_begin_, &self_begin_, &self_end_, &cross_q_, &cross_begin_, &cross_end_})
    list->clear();
  last_sequence_ = -1;
}

void KeyValueCache::add(int64_t sequence, int32_t slot, int64_t t) {
  const int32_t n = static_cast<int32_t>(positions_.size()), row = slot * static_cast<int32_t>(capacity_);
  positions_.push_back(static_cast<int32_t>(t));
  new_rows_.push_back(row + static_cast<int32_t>(t));
  q_begin_.push_back(n);
  self_begin_.push_back(row);
  self_end_.push_back(row + static_cast<int32_t>(t) + 1);
  if (sequence == last_sequence_) return;
  last_sequence_ = sequence;
  cross_q_.push_back(n);
  cross_begin_.push_back(source_offsets_[static_cast<size_t>(sequence)]);
  cross_end_.push_back(source_offsets_[static_cast<size_t>(sequence) + 1]);
}

Matrix<float> KeyValueCache::logits(size_t m, std::span<const int32_t> ids, Context& c) {
  const int32_t N = static_cast<int32_t>(positions_.size());
  q_begin_.resize(positions_.size() + 1, N);  // a second model finds the end there already
  cross_q_.resize(cross_begin_.size() + 1, N);
  const int32_t *q = q_begin_.data(), *cross_q = cross_q_.data();
  return models_[m].step(
      {ids,
       positions_,
       new_rows_,
       {N, q, q + 1, self_begin_.data(), self_end_.data()},
       {static_cast<int64_t>(cross_begin_.size()), cross_q, cross_q + 1, cross_begin_.data(), cross_end_.data()}},
      caches_[m], c);
}

void KeyValueCache::fill_with_zeros() {
  for (const LayerCaches& caches : caches_)
    for (const auto& cache : caches)
      for (int64_t r = 0; r < cache.self.rows; r++) std::fill_n(cache.self.row(r), cache.self.cols, 0.0f);
}

}  // namespace qkv
