// The device behind the table: which there are, memory, and copies. gpu/runtime.cu has a GPU,
// tests/cuda_emulator/runtime.cc a CPU. Errors are exceptions, whose text is one line.
#pragma once

#include <cstddef>

#include "qkv/device.h"

namespace qkv::cuda {

const char* name();
const char* missing();
int count();
void describe(int device, qkv_device_info* info);
void open(int device);

void reserve(size_t bytes, void** address);
void commit(void* address, size_t begin, size_t end);
void release(void* address, size_t bytes);

void upload(void* to, const void* from, size_t bytes);
void download(void* to, const void* from, size_t bytes);
void copy(void* to, const void* from, size_t bytes);
void synchronize();

// Returns memory of the device that no command uses but those of the running op, with any content. A larger request
// invalidates it.
void* workspace(size_t bytes);
template <class T>
T* workspace(int64_t count) {
  return static_cast<T*>(workspace(static_cast<size_t>(count) * sizeof(T)));
}

// Access to the device by the calling thread, for its lifetime.
class Access {
 public:
  Access();
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

}  // namespace qkv::cuda
