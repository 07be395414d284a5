#include "ranks/pairwise_rounds.h"

#include <algorithm>

namespace qkv {

PairwiseRounds::PairwiseRounds(Communicator& communicator, size_t rounds, int levels, size_t in_flight)
    : levels_(levels), states_(rounds, {levels, levels}), done_(rounds) {
  for (size_t i = 0; i < std::min(in_flight, rounds); i++) groups_.emplace_back(communicator);
}

void PairwiseRounds::restart() {
  done_ = 0;
  std::ranges::fill(states_, State{});
}

// Begins or ends a level of a round. Returns whether that was possible.
bool PairwiseRounds::step(size_t round, Begin begin, End end) {
  State& state = states_[round];
  if (state.ended == levels_) return false;
  if (state.begun > state.ended) {
    if (!group(round).ended()) return false;
    end(round, state.ended++);
    return true;
  }
  if (round > 0 && states_[round - 1].begun <= state.begun) return false;
  begin(round, state.begun++, group(round));
  return true;
}

void PairwiseRounds::advance(size_t count, Begin begin, End end) {
  for (bool moved = true; moved;) {
    moved = false;
    while (done_ < states_.size() && states_[done_].ended == levels_) done_++;
    for (size_t round = done_; round < std::min(count, done_ + groups_.size()); round++)
      while (step(round, begin, end)) moved = true;
  }
}

void PairwiseRounds::finish(size_t count, Begin begin, End end) {
  for (advance(count, begin, end); done_ < count; advance(count, begin, end)) group(done_).wait();
}

}  // namespace qkv
