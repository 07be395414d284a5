// The implementation of qkv::Recommender, independent of run directories.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/arena_pool.h"
#include "io/runs/run_kinds.h"
#include "qkv/recommender.h"
#include "recommend/best_items.h"
#include "recommend/catalogue.h"
#include "recommend/item_table.h"
#include "recommend/item_vectors.h"

namespace qkv {

// A history to recommend for, and its options. Everything that it refers to must outlive the call.
struct HistoryRequest {
  const std::vector<std::string>* history = nullptr;
  std::span<const int64_t> times = {};
  const RecommendOptions* options = nullptr;
};

class RecommenderState {
 public:
  // The run is loaded with its weights.
  explicit RecommenderState(RecommenderRun run, const RecommenderTables& tables = {});

  const Catalogue& catalogue() const { return catalogue_; }
  int64_t max_length() const { return model_->config().max_length; }

  std::vector<Recommendations> recommend(std::span<const HistoryRequest> requests) const;
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

  // The requests with equal options, and those whose items can be found in one pass.
  struct Alike {
    const RecommendOptions* options = nullptr;
    Permitted permitted;
    int64_t candidates = 0;
  };
  struct Pass {
    const Alike* first = nullptr;  // whose allowed items are those of all
    int64_t candidates = 0;        // the most of a request
    std::vector<ItemQuery> queries = {};
    std::vector<size_t> requests = {};
  };
  const Alike& kind_of(const RecommendOptions& options, std::list<Alike>& kinds) const;
  static Pass& pass_of(const Alike& kind, std::list<Pass>& passes);
  void answer(const RecommendOptions& options, const History& history, std::vector<ScoredToken> best,
              Recommendations& answer, Arena& arena) const;

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
