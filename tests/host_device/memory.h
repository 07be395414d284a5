// The memory of the host device: pages that can be touched only while one of its functions runs, so that any other
// access to them ends the process.
#pragma once

#include <cstddef>

namespace qkv::host_device {

bool reserve(size_t bytes, void** address);
bool commit(void* address, size_t begin, size_t end);
void release(void* address, size_t bytes);

// Makes the memory readable and writable for its lifetime.
class Access {
 public:
  Access();
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

}  // namespace qkv::host_device
