#include "ranks/watch.h"

#include <algorithm>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr double kMostBetweenBeats = 5;  // seconds
constexpr double kMostBetweenLooks = 2;  // the rest is a pause of this process

}  // namespace

Watch::Watch(int ranks, double timeout, double now)
    : timeout_(timeout), before_(now), beaten_(now - kMostBetweenBeats), ranks_(to_size(ranks)) {}

void Watch::expect(int rank, bool expected) { ranks_[to_size(rank)] = {expected, 0}; }

void Watch::heard(int rank) { ranks_[to_size(rank)].silence = 0; }

int Watch::silent_rank(double now) {
  const double passed = std::min(now - before_, kMostBetweenLooks);
  before_ = now;
  int silent = -1;
  for (size_t i = ranks_.size(); i-- > 0;) {
    State& rank = ranks_[i];
    rank.silence += passed;
    if (rank.expected && rank.silence > timeout_) silent = static_cast<int>(i);
  }
  return silent;
}

bool Watch::is_time_to_beat(double now) {
  if (now - beaten_ < std::min(kMostBetweenBeats, timeout_ / 4)) return false;
  beaten_ = now;
  return true;
}

}  // namespace qkv
