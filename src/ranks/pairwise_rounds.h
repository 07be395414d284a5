// Exchanges of k levels with 2^k ranks: at each level, a rank exchanges with one other. Rounds of k levels take place
// at the same time, because the next level of a round begins when the one before has ended.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "core/function_ref.h"
#include "ranks/communicator.h"

namespace qkv {

class PairwiseRounds {
 public:
  // begin(round, level, group) begins a level; end(round, level) is called when its messages have arrived. At most
  // `in_flight` rounds take place at the same time.
  using Begin = FunctionRef<void(size_t round, int level, Communicator::Group& group)>;
  using End = FunctionRef<void(size_t round, int level)>;
  PairwiseRounds(Communicator& communicator, size_t rounds, int levels, size_t in_flight);

  size_t in_flight() const { return groups_.size(); }
  void restart();  // all rounds, none of which has begun before
  // Does what is possible for the first `count` rounds without waiting. Between two ranks, rounds are in order.
  void advance(size_t count, Begin begin, End end);
  // The same, and waits until they have ended.
  void finish(size_t count, Begin begin, End end);

 private:
  struct State {
    int begun = 0, ended = 0;  // levels
  };

  bool step(size_t round, Begin begin, End end);
  Communicator::Group& group(size_t round) { return groups_[round % groups_.size()]; }

  int levels_;
  std::vector<State> states_;
  std::deque<Communicator::Group> groups_;
  size_t done_;  // rounds
};

}  // namespace qkv
