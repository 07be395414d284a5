// The saved state of a training by several ranks: each has the state of the optimizer for its own slices, and rank 0
// reads and writes the file, which has the bytes that one process writes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/weights/safetensors.h"
#include "ranks/communicator.h"
#include "ranks/slices.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {

class StateExchange {
 public:
  StateExchange(Communicator& communicator, std::span<const Slice> buckets);

  // Returns the size of an array of all ranks. The array is that of this rank.
  int64_t size_of(const OptimizerState::Array& array) const;

  // Pass the bytes of an array of all ranks to `write`, or take them from `whole`. Rank 0 calls them for each array of
  // the optimizer, in order, while the other ranks call send() or receive().
  void write(const OptimizerState::Array& array, WriteBytes write);
  void read(const OptimizerState::Array& array, std::span<const std::byte> whole);
  // Send all arrays of the optimizer of another rank to rank 0, or receive them.
  void send(const OptimizerState& optimizer);
  void receive(const OptimizerState& optimizer);

 private:
  struct Run {
    int rank = 0;
    int64_t parameters = 0;
  };

  // Calls f(rank, bytes) for each run of an array, in the order of the whole.
  template <class F>
  void for_each_run(const OptimizerState::Array& array, F&& f) const;
  // Calls begin(group, part) for the parts of all arrays of this rank, which is not rank 0, and waits for each group.
  template <class F>
  void exchange_own(const OptimizerState& optimizer, F&& begin);

  Communicator& communicator_;
  std::vector<Run> runs_;  // in the order of the parameters
  std::vector<std::byte> part_;
};

}  // namespace qkv
