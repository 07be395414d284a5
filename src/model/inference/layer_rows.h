// Keys and values of the layers of a Transformer, as its steps read and write them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/arena.h"
#include "core/device.h"
#include "core/to_size.h"
#include "model/inference/inference_engine.h"
#include "model/transformer.h"
#include "ops/rows.h"
#include "qkv/matrix.h"
#include "qkv/system.h"

namespace qkv {

// Returns the number of elements of a row in all layers.
template <class Real>
int64_t row_width(const Transformer<Real>& model) {
  int64_t width = 0;
  for (const auto& layer : model.decoder().layers()) width += layer.self_attention().keys_values_width();
  return width;
}

template <class Real>
class LayerRows : public KeysValues {
 public:
  using Caches = std::vector<typename Layer<Real>::Cache>;  // for each layer

  // Rows of self-attention are next to each other in memory. Their number is rounded up, so that later allocations
  // begin at one of few addresses whatever the batch, and unneeded rows are never touched.
  LayerRows(const Transformer<Real>& model, const CacheRows& rows, Arena& memory) : memory_(&memory) {
    constexpr int64_t kMostRounded = int64_t{64} << 20;  // elements
    const int64_t width = row_width(model);
    const auto rounded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows.self)));
    const Matrix<Real> all = memory.matrix<Real>(rounded * width <= kMostRounded ? rounded : rows.self, width);
    int64_t begin = 0;
    for (const auto& layer : model.decoder().layers()) {
      const int64_t end = begin + layer.self_attention().keys_values_width();
      caches_.push_back({all.row_range(0, rows.self).col_range(begin, end), {}});
      begin = end;
    }
    for (auto& cache : caches_) cache.cross = memory.matrix<Real>(rows.cross, cache.self.cols);
  }

  // Rows that grow: contiguous in memory in each layer.
  explicit LayerRows(const Transformer<Real>& model) {
    const auto& layers = model.decoder().layers();
    for (const auto& layer : layers) {
      Arena& memory = layer_memory_.emplace_back(physical_memory() / layers.size());
      caches_.push_back({memory.matrix<Real>(0, layer.self_attention().keys_values_width()), {}});
    }
  }

  const Caches& caches() const { return caches_; }

  void grow(int64_t rows) override {
    for (size_t i = 0; i < caches_.size(); i++) {
      layer_memory_[i].template matrix<Real>(rows, caches_[i].self.cols);
      caches_[i].self.rows += rows;
    }
  }

  void set_to_zero(RowRange rows) override {
    for (const auto& cache : caches_) fill<Real>(cache.self.row_range(rows.begin, rows.end), 0);
  }

  void forget_self(RowRange rows) override {
    if (memory_) return forget(*memory_, caches_.front().self, rows);  // a row holds those of all layers
    for (size_t i = 0; i < layer_memory_.size(); i++) forget(layer_memory_[i], caches_[i].self, rows);
  }

  void forget_cross(RowRange rows) override {
    for (const auto& cache : caches_) forget(*memory_, cache.cross, rows);
  }

 private:
  // A device keeps its memory.
  static void forget(Arena& memory, Matrix<Real> m, RowRange rows) {
    if constexpr (!kOnDevice<Real>) {
      const Matrix<Real> part = m.row_range(std::min(rows.begin, m.rows), std::min(rows.end, m.rows));
      memory.forget(part.data, to_size(part.rows * part.stride) * sizeof(Real));
    }
  }

  Arena* memory_ = nullptr;         // null: the rows grow
  std::deque<Arena> layer_memory_;  // of rows that grow
  Caches caches_;
};

}  // namespace qkv
