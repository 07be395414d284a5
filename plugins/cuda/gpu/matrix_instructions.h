// Instructions of a GPU for tiles of matrices of 16-bit elements (sm_80 and later).
// tests/cuda_emulator/matrix_instructions.h has the same for a CPU. All lanes of a warp call a function together, but
// for the copies.
#pragma once

#include <cstdint>

namespace qkv::cuda {

// The address of shared memory as instructions have it.
__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Copies up to 16 bytes to shared memory and fills the rest of them with zeros, while the thread continues. Both
// addresses are multiples of 16.
__device__ inline void copy_async(void* shared, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(from), "r"(bytes)
               : "memory");
}
// Ends a group of copies of the thread.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all groups of copies of the thread but the last kLeft.
template <int kLeft>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Loads four matrices of 8 × 8 elements from shared memory. Lanes 8j to 8j + 7 give the addresses of the rows of matrix
// j, and to[j] has its elements of row lane / 4, columns 2 (lane % 4) and the next one. With kTransposed these are of
// the transposed matrix.
template <bool kTransposed>
__device__ void load_matrices(uint32_t (&to)[4], const uint16_t* row) {
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
}

// Rounds two numbers to bfloat16, the first one in the lower bits.
__device__ inline uint32_t pair_of(float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

// c += A Bᵀ of bfloat16 elements, A of 16 × 16 and B of 8 × 16, with sums in float32. `a` has the four quarters of A:
// rows 0 to 7 and 8 to 15 of its first half of columns, then of its second half. `b` has the halves of B. Both are as
// load_matrices returns them. A lane has c of row lane / 4, columns 2 (lane % 4) and the next one, and then of the row
// 8 below.
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace qkv::cuda
