// The emulator of blocks of threads: tests/cuda_emulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/cuda_emulator/launch.h"

namespace {

using qkv::cuda::launch;

__global__ void number_threads(std::vector<unsigned>* numbers) {
  numbers->push_back(blockIdx.x * blockDim.x + threadIdx.x);
}

TEST(CudaEmulator, RunsEachThreadOfEachBlockInOneOrderOrTheOther) {
  std::vector<unsigned> numbers, expected(128);
  launch(number_threads, 2, 64, &numbers);
  ASSERT_EQ(numbers.size(), 128u);
  const auto half = numbers.begin() + 64;
  EXPECT_NE(std::is_sorted(numbers.begin(), half), std::is_sorted(half, numbers.end()));
  std::ranges::sort(numbers);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(numbers, expected);
}

// The block sums the numbers of all threads by halves.
__global__ void sum_of_block(int* sums) {
  __shared__ int numbers[256];
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x + blockIdx.x);
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) numbers[threadIdx.x] += numbers[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = numbers[0];
}

TEST(CudaEmulator, ThreadsWaitForTheirBlock) {
  std::vector<int> sums(2);
  launch(sum_of_block, 2, 256, sums.data());
  EXPECT_EQ(sums, (std::vector<int>{255 * 128, 255 * 128 + 256}));
}

// Threads that end do not hold up the others.
__global__ void wait_after_others_end(int* count) {
  if (threadIdx.x >= 40) return;
  __syncthreads();
  ++*count;
}

TEST(CudaEmulator, ThreadsThatHaveEndedAreNotWaitedFor) {
  int count = 0;
  launch(wait_after_others_end, 1, 64, &count);
  EXPECT_EQ(count, 40);
}

__global__ void exchange_in_warp(float* results, unsigned* votes) {
  float x = static_cast<float>(threadIdx.x);
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xFFFFFFFF, x, lanes);
  results[threadIdx.x] = x;
  votes[threadIdx.x] = __ballot_sync(0xFFFFFFFF, threadIdx.x % 3 == 0);
}

TEST(CudaEmulator, LanesOfAWarpExchangeNumbers) {
  std::vector<float> results(64);
  std::vector<unsigned> votes(64);
  launch(exchange_in_warp, 1, 64, results.data(), votes.data());
  for (size_t t = 0; t < 64; t++) {
    EXPECT_EQ(results[t], t < 32 ? 496 : 1520);
    EXPECT_EQ(votes[t], t < 32 ? 0x49249249u : 0x92492492u);
  }
}

__global__ void end_before_the_warp() {
  if (threadIdx.x % 32 == 5) return;
  __syncwarp();
}

__global__ void different_collectives() {
  if (threadIdx.x % 2)
    __syncwarp();
  else
    __ballot_sync(0xFFFFFFFF, 1);
}

__global__ void wait_for_block_and_warp() {
  if (threadIdx.x < 32)
    __syncthreads();
  else if (threadIdx.x < 48)
    __syncwarp();
}

TEST(CudaEmulator, ThreadsThatWaitForeverAreAnError) {
  EXPECT_THROW(launch(end_before_the_warp, 1, 64), std::logic_error);
  EXPECT_THROW(launch(different_collectives, 1, 32), std::logic_error);
  EXPECT_THROW(launch(wait_for_block_and_warp, 1, 64), std::logic_error);
  std::vector<int> sums(1);
  launch(sum_of_block, 1, 256, sums.data());  // works again
  EXPECT_EQ(sums[0], 255 * 128);
}

}  // namespace
