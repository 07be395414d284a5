#include "train/optimizer/feature_sums.h"

#include <cmath>
#include <numeric>
#include <span>

#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kRows = 64;  // per block

template <class Rows, class AddRow>
void for_each_entry(const Rows& rows, int64_t first, const AddRow& add_row) {
  parallel_blocks(std::ssize(rows.offsets) - 1 - first, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t r = first + begin; r < first + end; r++)
      for (int64_t i = rows.offsets[to_size(r)]; i < rows.offsets[to_size(r) + 1]; i++)
        add_row(r, rows.entries[to_size(i)]);
  });
}

}  // namespace

FeatureSums::FeatureSums(const ItemFeatures& features) {
  of_items_.offsets = features.offsets;
  of_features_.offsets.resize(features.names.size() + 1);
  of_features_.entries.resize(features.ids.size());
  std::vector<int64_t>& offsets = of_features_.offsets;
  for (const int32_t f : features.ids) offsets[to_size(f) + 1]++;
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
  for (int64_t v = 0; v < features.items(); v++) {
    const std::span<const int32_t> own = features.of(v);
    const float weight = 1 / std::sqrt(static_cast<float>(own.size()));
    for (const int32_t f : own) {
      of_items_.entries.push_back({f, weight});
      of_features_.entries[to_size(next[to_size(f)]++)] = {static_cast<int32_t>(v), weight};
    }
  }
}

void FeatureSums::add_gradient(Matrix<const float> dE, Matrix<float> dG) const {
  for_each_entry(of_features_, 0, [&](int64_t f, const Entry& item) {
    for (int64_t j = 0; j < dG.cols; j++) dG(f, j) += item.weight * dE(item.row, j);
  });
}

void FeatureSums::add_change(Matrix<const float> G, Matrix<const float> before, int64_t first, Matrix<float> E) const {
  for_each_entry(of_items_, first, [&](int64_t v, const Entry& feature) {
    for (int64_t j = 0; j < E.cols; j++) E(v, j) += feature.weight * (G(feature.row, j) - before(feature.row, j));
  });
}

}  // namespace qkv
