// The implementation of qkv::Recommender, independent of run directories.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/arena_pool.h"
#include "qkv/recommender.h"
#include "recommend/best_items.h"
#include "recommend/catalogue.h"

namespace qkv {

class Serving {
 public:
  // The log must have as many items as the model.
  Serving(std::unique_ptr<Transformer<float>> model, bool positions_from_end, Interactions log);

  const Catalogue& catalogue() const { return catalogue_; }
  int64_t max_length() const { return model_->config().max_length; }

  std::vector<Recommendations> recommend(std::span<const std::vector<std::string>> histories,
                                         std::span<const std::vector<int64_t>> times,
                                         const RecommendOptions& options) const;

 private:
  std::unique_ptr<Transformer<float>> model_;
  ItemModel items_;
  Catalogue catalogue_;
  mutable ArenaPool arenas_;
};

}  // namespace qkv
