// The implementation of qkv::Recommender, independent of run directories.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/arena_pool.h"
#include "io/recommender_run.h"
#include "qkv/recommender.h"
#include "recommend/best_items.h"
#include "recommend/catalogue.h"
#include "recommend/item_table.h"
#include "recommend/item_vectors.h"

namespace qkv {

class Serving {
 public:
  // The run is loaded with its weights.
  explicit Serving(RecommenderRun run, const RecommenderTables& tables = {});

  const Catalogue& catalogue() const { return catalogue_; }
  int64_t max_length() const { return model_->config().max_length; }

  std::vector<Recommendations> recommend(std::span<const std::vector<std::string>> histories,
                                         std::span<const std::vector<int64_t>> times,
                                         const RecommendOptions& options) const;
  Recommendations similar(std::string_view item, const RecommendOptions& options) const;
  void check(const RecommendOptions& options) const;

 private:
  // The items that the options permit.
  struct Permitted {
    std::optional<std::vector<int32_t>> allowed;  // without a value, all are
    std::vector<int32_t> denied;                  // both are in strictly ascending order
    std::vector<std::string> unknown;             // entries of the lists that are not items

    const std::vector<int32_t>* allowed_items() const { return allowed ? &*allowed : nullptr; }
  };
  Permitted permitted(const RecommendOptions& options) const;

  const ItemVectors& vectors() const;
  // Reduces a list of candidates_for(top, diversity) items to the `top` of the options.
  void diversify_list(std::vector<ScoredToken>& items, const RecommendOptions& options, Arena& arena) const;
  std::vector<ScoredToken> popular_items(const std::vector<int32_t>& hidden, const std::vector<int32_t>* allowed,
                                         int64_t top) const;

  std::unique_ptr<Transformer<float>> model_;
  bool repeats_;  // the default of exclude_seen is the opposite
  std::unique_ptr<Transitions> transitions_;
  ItemModel items_;
  Catalogue catalogue_;
  ItemTable table_;
  mutable ArenaPool arenas_;
  mutable std::once_flag vectors_once_;  // the first call that needs them computes vectors_
  mutable std::optional<ItemVectors> vectors_;
};

}  // namespace qkv
