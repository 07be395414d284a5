// Launches of kernels on a GPU. tests/cuda_emulator/launch.h has the same names for a CPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <tuple>

namespace qkv::cuda {

// Throws unless the status of a call is success.
void check(cudaError_t status);

// The only stream: commands are done in the order of their calls.
cudaStream_t stream();

// Runs a kernel in blocks of `threads`, which is a multiple of 32. Does nothing without blocks.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int64_t blocks, int threads, const Arguments&... arguments) {
  if (blocks == 0) return;
  std::tuple<Parameters...> values(arguments...);
  void* pointers[sizeof...(Parameters)];
  std::apply(
      [&](auto&... each) {
        int i = 0;
        ((pointers[i++] = &each), ...);
      },
      values);
  const dim3 grid(static_cast<unsigned>(blocks)), block(static_cast<unsigned>(threads));
  check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers, 0, stream()));
}

}  // namespace qkv::cuda
