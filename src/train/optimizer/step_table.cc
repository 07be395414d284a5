#include "train/optimizer/step_table.h"

#include <algorithm>

#include "core/to_size.h"
#include "ops/rows.h"

namespace qkv {
namespace {

ModelConfig with_items(ModelConfig config, int64_t items) {
  config.target_vocab = items;
  return config;
}

}  // namespace

StepTable::StepTable(const ModelConfig& config, const ItemInputs& items, int64_t capacity)
    : small_(with_items(config, std::min(capacity, config.target_vocab)), items),
      places_(to_size(config.target_vocab), -1) {
  small_.parameters().allocate_gradients();
  items_.reserve(to_size(small_.config().target_vocab));
}

void StepTable::clear() {
  for (const int32_t item : items_) places_[to_size(item)] = -1;
  items_.clear();
}

void StepTable::replace(std::span<int32_t> ids) {
  for (int32_t& id : ids) {
    int32_t& place = places_[to_size(id)];
    if (place < 0) {
      place = static_cast<int32_t>(items_.size());
      items_.push_back(id);
    }
    id = place;
  }
}

const Transformer<float>& StepTable::gather(const Transformer<float>& model) {
  const Matrix<float> from = model.item_table().matrix(), to = small_.item_table().matrix();
  gather_rows<float>(from, items_, to.row_range(0, std::ssize(items_)));
  const auto others = [](const Transformer<float>& m) {
    return m.parameters().values().subspan(to_size(m.item_table().size()));
  };
  std::ranges::copy(others(model), others(small_).begin());
  const RowGradients zero = gradients();
  fill<float>(zero.table, 0);
  std::ranges::fill(zero.others, 0.0f);
  return small_;
}

RowGradients StepTable::gradients() const {
  const Parameter<float>& table = small_.item_table();
  return {items_,
          {table.gradient, std::ssize(items_), table.shape[1]},
          small_.parameters().gradients().subspan(to_size(table.size()))};
}

size_t StepTable::bytes() const {
  return 2 * small_.parameters().values().size_bytes() + (items_.capacity() + places_.capacity()) * sizeof(int32_t);
}

}  // namespace qkv
