// Whether other ranks are alive: how long each was silent, in time during which this process ran. A pause of this
// process (SIGSTOP, a suspended machine) does not count as silence of the others.
#pragma once

#include <vector>

namespace qkv {

class Watch {
 public:
  // Times are in seconds. `timeout` is the silence after which a rank counts as dead.
  Watch(int ranks, double timeout, double now);

  // Begins to expect signs of life of a rank, or ends.
  void expect(int rank, bool expected = true);
  void heard(int rank);
  // Returns the first rank that has been silent for longer than the timeout, or -1. To be called at least once a
  // second, after the messages that arrived were read.
  int silent_rank(double now);
  // Returns whether it is time to send a beat, which it then takes as sent.
  bool is_time_to_beat(double now);

  double timeout() const { return timeout_; }

 private:
  struct State {
    bool expected = false;
    double silence = 0;
  };

  double timeout_, before_, beaten_;
  std::vector<State> ranks_;
};

}  // namespace qkv
