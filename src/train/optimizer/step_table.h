// The items of one step. A batch reads few rows of the table of items: those of its inputs, labels and negatives. A
// small model whose table has only these rows computes the loss and the gradient, so that the cost of a step and the
// memory of gradients follow the batch and not the catalogue.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/transformer.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {

class StepTable {
 public:
  // For a decoder-only model with tied output and without features, and batches with at most `capacity` items.
  StepTable(const ModelConfig& config, const ItemInputs& items, int64_t capacity);

  // Starts a batch.
  void clear();
  // Replaces the ids of items by those of the small model, in the order in which items first occur in the batch.
  void replace(std::span<int32_t> ids);
  std::span<const int32_t> items() const { return items_; }

  // Copies the rows of the items, and all other weights, from `model`. Sets the gradients to zero.
  const Transformer<float>& gather(const Transformer<float>& model);

  RowGradients gradients() const;
  size_t bytes() const;

 private:
  Transformer<float> small_;
  std::vector<int32_t> items_;
  std::vector<int32_t> places_;  // [V]: place in items_, or −1
};

}  // namespace qkv
