// The CPU behind plugins/cuda/runtime.h: memory that nothing else can touch, and copies.
#include "runtime.h"

#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "host_device/memory.h"

namespace qkv::cuda {
namespace {

std::optional<host_device::Access> access_of_call;

}  // namespace

const char* name() { return "emulated CUDA"; }
const char* missing() { return nullptr; }
int count() { return 1; }
void describe(int, qkv_device_info* info) {
  std::snprintf(info->name, sizeof(info->name), "emulated GPU");
  info->bytes = uint64_t{1} << 34;
}
void open(int) {}

void reserve(size_t bytes, void** address) {
  if (!host_device::reserve(bytes, address)) throw std::runtime_error("no addresses are left");
}
void commit(void* address, size_t begin, size_t end) {
  if (!host_device::commit(address, begin, end)) throw std::logic_error("memory is not committed in order");
}
void release(void* address, size_t bytes) { host_device::release(address, bytes); }

void upload(void* to, const void* from, size_t bytes) { copy(to, from, bytes); }
void download(void* to, const void* from, size_t bytes) { copy(to, from, bytes); }
void copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
void synchronize() {}

void* workspace(size_t bytes) {
  static std::vector<double> memory;
  memory.resize(bytes / sizeof(double) + 1);
  std::memset(memory.data(), 0xFF, memory.size() * sizeof(double));  // NaN
  return memory.data();
}

Access::Access() { access_of_call.emplace(); }
Access::~Access() { access_of_call.reset(); }

}  // namespace qkv::cuda
