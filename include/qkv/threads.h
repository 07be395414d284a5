// The number of threads that the library uses.
#pragma once

namespace qkv {

// Set and get the number of threads. Default: OMP_NUM_THREADS, else one per processor. It changes no result.
void set_threads(int count);
int threads();

}  // namespace qkv
