// Batches of a log for a recommender: of each user the last items of the training part, each to be followed by the next
// one. There is no padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/batcher.h"
#include "data/interactions.h"
#include "data/split.h"
#include "qkv/recommendation.h"

namespace qkv {

struct ItemBatchOptions {
  int64_t max_length = 200;  // items of a sequence
  int64_t batch_tokens = 16384;
  Split split = {};                // what comes before its validation is for training
  bool positions_from_end = true;  // the newest item has position max_length − 1; else the oldest has 0
  int64_t negatives = 0;           // drawn for each token
  NegativeSampling sampling = NegativeSampling::uniform;
  uint64_t seed = 1;
  bool gaps = false;  // the time between events is read, of nine users in ten
};

// Its batches depend on nothing but the log, options, epoch and number.
class ItemBatches {
 public:
  // The log outlives it. Throws Error if no user has two items for training, and if batch_tokens is below the longest
  // sequence.
  ItemBatches(const Interactions& log, const ItemBatchOptions& options);

  int64_t tokens(std::span<const int64_t> users) const;  // of their batch
  BatchList shuffled(int64_t epoch) const;               // users, in batches as full as the order allows

  // target = the items but the last, labels = the items but the first. `index` tells batches apart: of one user in ten,
  // others in each batch, no gap is known, for a model that is also to serve histories without times.
  void fill(std::span<const int64_t> users, uint64_t index, Batch& batch) const;

  // For every token of that batch its label and then the negatives, none in the training part of the user, unless that
  // has every item. And the logarithm of how often each is expected among them, 0 for the label. Where a user has
  // nearly all that is popular, negatives are drawn uniformly. `index` tells batches apart.
  void draw(std::span<const int64_t> users, const Batch& batch, uint64_t index, std::vector<int32_t>& ids,
            std::vector<float>& log_draws) const;

  int64_t users() const { return static_cast<int64_t>(users_.size()); }  // that have two items
  int64_t tokens() const { return tokens_; }                             // of an epoch
  int64_t longest() const { return longest_; }

 private:
  // Where a user's negatives are drawn from, and what is thrown back.
  struct Negatives {
    bool uniform;
    double weights;  // sum over what may stay: of items 1, or their events
    std::span<const int32_t> from;
    std::vector<int32_t> kept, not_these;  // `from`, where it is the user's own; sorted
  };
  Negatives negatives_of(int64_t user) const;

  std::span<const int32_t> training_part(int64_t user) const;
  std::span<const int32_t> sequence(int64_t user) const;  // the last max_length + 1 of it

  const Interactions& log_;
  ItemBatchOptions options_;
  std::vector<int64_t> users_;
  int64_t tokens_ = 0, longest_ = 0;
  std::vector<int32_t> training_events_;  // of all users, where negatives are drawn by popularity
  std::vector<int64_t> counts_;           // of each item among them
  std::vector<int32_t> items_;            // 0, 1, …
};

}  // namespace qkv
