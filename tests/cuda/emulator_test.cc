// The emulator of blocks of threads: tests/cuda_emulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "qkv/bfloat16.h"
#include "tests/cuda_emulator/launch.h"
#include "tests/cuda_emulator/matrix_instructions.h"

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

using Elements = std::vector<uint16_t>;

// c = A Bᵀ of 16 × 16 and 8 × 16 elements. Where kTransposed, `a` and `b` are Aᵀ, and Bᵀ with 8 more columns.
template <bool kTransposed>
__global__ void multiply(const uint16_t* a, const uint16_t* b, float* c) {
  const unsigned lane = threadIdx.x, line = lane % 8, first = lane / 8 % 2 * 8, second = lane / 16 * 8;
  uint32_t rows[4], cols[4];
  qkv::cuda::load_matrices<kTransposed>(
      rows, kTransposed ? a + (second + line) * 16 + first : a + (first + line) * 16 + second);
  qkv::cuda::load_matrices<kTransposed>(
      cols, kTransposed ? b + (first + line) * 16 + second : b + (second + line) * 16 + first);
  float sums[4] = {1, 1, 1, 1};
  qkv::cuda::multiply_add(sums, rows, {cols[0], cols[1]});
  for (unsigned i = 0; i < 4; i++) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

TEST(CudaEmulator, MultipliesMatrices) {
  Elements a(256), b(256), transposed_a(256), transposed_b(256);
  std::vector<float> expected(128, 1), c(128), of_transposed(128);
  const auto number = [](size_t i) { return static_cast<float>(i * 7 % 31) - 15; };
  for (size_t r = 0; r < 16; r++)
    for (size_t k = 0; k < 16; k++) {
      a[r * 16 + k] = transposed_a[k * 16 + r] = qkv::bfloat16(number(r * 16 + k)).bits;
      b[r * 16 + k] = transposed_b[k * 16 + r] = qkv::bfloat16(number(r * 5 + k * 3)).bits;
      for (size_t n = 0; n < 8; n++) expected[r * 8 + n] += number(r * 16 + k) * number(n * 5 + k * 3);
    }
  launch(multiply<false>, 1, 32, a.data(), b.data(), c.data());
  launch(multiply<true>, 1, 32, transposed_a.data(), transposed_b.data(), of_transposed.data());
  EXPECT_EQ(c, expected);
  EXPECT_EQ(of_transposed, expected);
}

__global__ void copy_in_groups(const uint16_t* from, uint16_t* to, std::vector<uint16_t>* seen) {
  qkv::cuda::copy_async(to, from, 16);
  qkv::cuda::end_copies();
  qkv::cuda::copy_async(to + 8, from + 8, 6);
  qkv::cuda::end_copies();
  const auto see = [&] { seen->insert(seen->end(), {to[7], to[8], to[11]}); };
  see();
  qkv::cuda::wait_for_copies<1>();
  see();
  qkv::cuda::wait_for_copies<0>();
  see();
}

// On a GPU they may be done earlier. A copy of less than 16 bytes is followed by zeros.
TEST(CudaEmulator, CopiesAreDoneWhenAThreadWaitsForThem) {
  alignas(16) const uint16_t from[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  alignas(16) uint16_t to[16] = {20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20};
  std::vector<uint16_t> seen;
  launch(copy_in_groups, 1, 1, &from[0], &to[0], &seen);
  EXPECT_EQ(seen, (std::vector<uint16_t>{20, 20, 20, 8, 20, 20, 8, 9, 0}));
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
