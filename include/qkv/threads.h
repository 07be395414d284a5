// How many threads the library computes with.
#pragma once

namespace qkv {

// At first what OpenMP decides: OMP_NUM_THREADS, else one a processor. Results do not depend on it.
void set_threads(int count);
int threads();

}  // namespace qkv
