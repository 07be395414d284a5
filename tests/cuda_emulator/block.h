// Blocks of threads of a GPU on one thread of a CPU. Each thread of a block is a fiber that runs until it waits for
// others: all threads of its block, or the 32 lanes of its warp. Threads that never wait share a fiber. Every other
// block runs its threads in reverse order, so that a result that depends on the order differs when it is computed
// again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace qkv::cuda::emulator {

struct Index {
  unsigned x = 0;
};

// The coordinates of the running thread.
extern Index threadIdx, blockIdx, blockDim;

// Runs all blocks of a launch, one after the other. Throws std::logic_error if threads wait for some that have ended,
// or lanes of a warp for different collectives.
void run_blocks(int64_t blocks, int threads, const std::function<void()>& thread);

// __syncthreads: waits until all threads of the block wait. Threads that have ended do not count.
void wait_for_block();

// The exchanges of the lanes of a warp.
enum class Collective { sync, shuffle, ballot, load, multiply };

// The numbers of a lane, and those of all lanes, which exist until the next exchange but one.
using Numbers = std::array<uint64_t, 3>;
using Lanes = std::array<Numbers, 32>;

// Waits until all lanes of the warp give numbers. All of them must take part.
const Lanes& exchange(Collective kind, const Numbers& numbers);

}  // namespace qkv::cuda::emulator
