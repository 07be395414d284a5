// Batches for a recommender: the last training items of each user, each labelled with the next one. There is no
// padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.h"
#include "core/random.h"
#include "data/batcher.h"
#include "data/log/interactions.h"
#include "data/log/split.h"
#include "qkv/recommendation.h"

namespace qkv {

struct ItemBatchOptions {
  int64_t max_length = 200;  // largest number of items in a sequence
  int64_t batch_tokens = 16384;
  Split split = {};                // events before its validation period are training events
  bool positions_from_end = true;  // the newest item has position max_length − 1; otherwise the oldest has 0
  int64_t negatives = 0;           // number drawn for each token, or for each batch
  NegativeSampling sampling = NegativeSampling::uniform;
  bool repeats = false;  // items of the user may be negatives, but for the label
  NegativeScope scope = NegativeScope::token;
  uint64_t seed = 1;
  bool gaps = false;  // use the times between events, hidden for one user in ten
};

// The batches of a log. They depend only on the log, the options, the epoch and the batch number.
class ItemBatches {
 public:
  // The log must outlive it. Throws Error if no user has two training items, or if batch_tokens is less than the
  // longest sequence.
  ItemBatches(const Interactions& log, const ItemBatchOptions& options);

  int64_t tokens(std::span<const int64_t> users) const;  // in their batch
  BatchList shuffled(int64_t epoch) const;               // users, in batches as full as the order allows

  // Fills `batch`: target = all items but the last, labels = all items but the first. `index` identifies the batch: for
  // one user in ten, chosen by `index`, no gap is known, so that the model can also serve histories without times.
  void fill(std::span<const int64_t> users, uint64_t index, Batch& batch) const;

  // Assigns, for every token of that batch, its label followed by the negatives. A negative is never a training item of
  // the user, unless the user has all items; with repeats, it is never the label, unless nearly all draws would be.
  // log_draws is the logarithm of the expected count of each among the draws, 0 for the label. If a user has nearly all
  // popular items, negatives are drawn uniformly. `index` identifies the batch.
  void draw(std::span<const int64_t> users, const Batch& batch, uint64_t index, std::vector<int32_t>& ids,
            std::vector<float>& log_draws) const;

  // The negatives of all tokens of a batch: `negatives` items, in increasing order and with repetitions, drawn from all
  // items. log_draws: as above.
  void draw_shared(uint64_t index, std::vector<int32_t>& ids, std::vector<float>& log_draws) const;

  int64_t users() const { return static_cast<int64_t>(users_.size()); }  // with at least two items
  int64_t tokens() const { return tokens_; }                             // in an epoch
  int64_t longest() const { return longest_; }
  size_t bytes() const {
    return vector_bytes(users_) + vector_bytes(training_events_) + vector_bytes(counts_) + vector_bytes(items_);
  }

 private:
  // The distribution of a user's negatives, and the items that are rejected.
  struct Negatives {
    bool uniform;
    double weights;  // sum of the weights of the items that are not rejected: 1, or their numbers of events
    std::span<const int32_t> from;
    std::vector<int32_t> kept, rejected;  // kept: storage of `from` if it is specific to the user; both are sorted
  };
  Negatives negatives_of(int64_t user) const;

  int32_t random_training_event(Random& random) const;

  std::span<const int32_t> training_part(int64_t user) const;
  std::span<const int32_t> sequence(int64_t user) const;  // the last max_length + 1 training items

  const Interactions& log_;
  ItemBatchOptions options_;
  std::vector<int64_t> users_;
  int64_t tokens_ = 0, longest_ = 0;
  std::vector<int32_t> training_events_;  // events of all users, if negatives of tokens are drawn by popularity
  std::vector<int64_t> counts_;           // number of training events of each item
  int64_t events_ = 0;                    // number of training events of all items
  std::vector<int32_t> items_;            // 0, 1, …, if negatives are drawn for each token
};

}  // namespace qkv
