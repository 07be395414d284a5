// Recommenders that count, to stand beside every figure. Both are ScoreItems, and learn from the events that are known
// before `part`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.h"
#include "data/interactions.h"
#include "data/split.h"

namespace qkv {

// Orders items by their number of events, of all users; those of equal numbers have equal scores. The history does not
// matter.
class Popularity {
 public:
  Popularity(const Interactions& data, const Split& split, Part part);

  void operator()(std::span<const History> histories, Matrix<float> scores) const;

  std::span<const float> scores() const { return scores_; }  // of every item: integers from 0 on

 private:
  std::vector<float> scores_;
};

// First-order Markov chain: orders items by how often they came right after the last item of the history, those that
// did so equally often (never, too) by popularity.
class Markov {
 public:
  Markov(const Interactions& data, const Split& split, Part part);

  void operator()(std::span<const History> histories, Matrix<float> scores) const;

 private:
  struct Scored {
    int32_t item;
    float score;
  };

  Popularity popularity_;
  std::vector<int64_t> offsets_ = {0};  // item i was followed by next_[offsets_[i]] … next_[offsets_[i + 1] − 1]
  std::vector<Scored> next_;
};

}  // namespace qkv
