// The implementation of qkv::Recommender, independent of run directories.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/arena_pool.h"
#include "core/to_size.h"
#include "data/log/interactions.h"
#include "data/log/name_table.h"
#include "io/runs/run_kinds.h"
#include "model/inference/inference_engine.h"
#include "qkv/placement.h"
#include "qkv/recommender.h"
#include "recommend/best_items.h"
#include "recommend/item_filter.h"
#include "recommend/item_vectors.h"

namespace qkv {

// The names of a run's items and users, and the number of events of each item.
class Catalogue {
 public:
  explicit Catalogue(Interactions log);

  const NameTable& items() const { return items_; }
  const NameTable& users() const { return users_; }
  History history_of(int32_t user) const { return log_.history(user); }

  // Returns the ids of the known items, in order, and appends the other names to `unknown`.
  std::vector<int32_t> ids(const std::vector<std::string>& names, std::vector<std::string>& unknown) const;

  // Converts a history likewise. times: empty, or the time of each event.
  Events events(const std::vector<std::string>& names, std::span<const int64_t> times,
                std::vector<std::string>& unknown) const;

  // Returns items in descending order of their number of events; ties are in order of id.
  std::span<const int32_t> popular() const { return popular_; }
  int64_t events(int32_t item) const { return counts_[to_size(item)]; }

 private:
  Interactions log_;  // without its names
  NameTable items_, users_;
  std::vector<int64_t> counts_;  // events of each item
  std::vector<int32_t> popular_;
};

// A history to recommend for, and its options. Everything that it refers to must outlive the call.
struct HistoryRequest {
  const std::vector<std::string>* history = nullptr;
  std::span<const int64_t> times = {};
  const RecommendOptions* options = nullptr;
};

class RecommenderState {
 public:
  // The run is loaded with its weights. directory: its name in errors.
  explicit RecommenderState(RecommenderRun run, const RecommenderTables& tables = {}, const Placement& placement = {},
                            const std::string& directory = "");

  const Catalogue& catalogue() const { return catalogue_; }
  int64_t max_length() const { return model_->config().max_length; }

  std::vector<Recommendations> recommend(std::span<const HistoryRequest> requests) const;
  Recommendations similar(std::string_view item, const RecommendOptions& options) const;
  HiddenStates hidden(const std::vector<std::string>& history, std::span<const int64_t> times) const;
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
  std::shared_ptr<const InferenceEngine> engine_;
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
