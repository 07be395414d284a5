#include "core/threads.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace qkv {

void set_threads(int count) { omp_set_num_threads(count); }
int threads() { return omp_get_max_threads(); }

#if defined(__SSE2__)
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(static_cast<unsigned>(saved_) | 0x8040u); }
FlushDenormals::~FlushDenormals() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
FlushDenormals::FlushDenormals() {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" : : "r"(saved_ | (uint64_t{1} << 24)));
}
FlushDenormals::~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
FlushDenormals::FlushDenormals() : saved_(0) {}
FlushDenormals::~FlushDenormals() {}
#endif

}  // namespace qkv
