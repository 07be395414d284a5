// The GPU behind runtime.h. The CUDA runtime is linked statically and finds the driver when it is called, so the plugin
// loads on a machine without one.
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "launch.h"
#include "runtime.h"

namespace qkv::cuda {
namespace {

int chosen = 0;
cudaStream_t only_stream = nullptr;

// Memory of the host that the GPU copies from while the caller goes ahead. The first bytes of it are in use.
constexpr size_t kStaging = size_t{4} << 20;
void* staging = nullptr;
size_t staged = 0;

// The virtual memory functions of the driver, which the runtime does not have.
template <class Function>
Function driver_function(const char* symbol) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion(symbol, &found, 12000, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess) throw std::runtime_error(std::string("the driver lacks ") + symbol);
  return reinterpret_cast<Function>(found);
}

struct Driver {
  decltype(&cuMemAddressReserve) reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free = driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = driver_function<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) allow = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
  decltype(&cuGetErrorString) text = driver_function<decltype(&cuGetErrorString)>("cuGetErrorString");
};

const Driver& driver() {
  static const Driver functions;
  return functions;
}

void check(CUresult status) {
  if (status == CUDA_SUCCESS) return;
  const char* text = nullptr;
  driver().text(status, &text);
  throw std::runtime_error(text ? text : "unknown error of the driver");
}

CUdeviceptr number(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

// A reservation, and where each of the pieces of memory that were mapped into it ends.
using Ends = std::vector<size_t>;
std::map<void*, Ends>& reservations() {
  static std::map<void*, Ends> all;
  return all;
}

int supported_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

cudaStream_t stream() { return only_stream; }

const char* name() {
  static const std::string text = [] {
    std::string driver_version;
    std::ifstream("/sys/module/nvidia/version") >> driver_version;
    return "CUDA " + version_text(CUDART_VERSION) + (driver_version.empty() ? "" : ", driver " + driver_version);
  }();
  return text.c_str();
}

const char* missing() {
  static const std::string text = [] {
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status == cudaSuccess && devices > 0) return std::string();
    const int version = supported_version();
    if (version == 0) return std::string("no NVIDIA driver was found (libcuda.so.1)");
    if (status == cudaErrorInsufficientDriver)
      return "the NVIDIA driver supports CUDA " + version_text(version) + "; at least " + version_text(CUDART_VERSION) +
             " is required";
    return std::string(status == cudaSuccess ? "no GPU was found" : cudaGetErrorString(status));
  }();
  return text.empty() ? nullptr : text.c_str();
}

int count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

void describe(int device, qkv_device_info* info) {
  cudaDeviceProp properties = {};
  check(cudaGetDeviceProperties(&properties, device));
  std::snprintf(info->name, sizeof(info->name), "%s", properties.name);
  info->bytes = properties.totalGlobalMem;
}

void open(int device) {
  check(cudaSetDevice(device));
  if (only_stream) {
    synchronize();
    check(cudaStreamDestroy(only_stream));
  }
  check(cudaStreamCreateWithFlags(&only_stream, cudaStreamNonBlocking));
  chosen = device;
}

void reserve(size_t bytes, void** address) {
  CUdeviceptr reserved = 0;
  check(driver().reserve(&reserved, bytes, 0, 0, 0));
  *address = reinterpret_cast<void*>(reserved);
  reservations()[*address] = {0};
}

void commit(void* address, size_t begin, size_t end) {
  Ends& ends = reservations().at(address);
  if (ends.back() != begin) throw std::logic_error("memory is not committed in order");
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, chosen};
  CUmemGenericAllocationHandle memory = 0;
  check(driver().create(&memory, end - begin, &kind, 0));
  const CUresult mapped = driver().map(number(address) + begin, end - begin, 0, memory, 0);
  check(driver().release(memory));  // the mapping keeps it
  check(mapped);
  const CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  try {
    check(driver().allow(number(address) + begin, end - begin, &access, 1));
    check(cudaMemsetAsync(static_cast<char*>(address) + begin, 0, end - begin, stream()));
  } catch (...) {  // the next call begins at the same place
    driver().unmap(number(address) + begin, end - begin);
    throw;
  }
  ends.push_back(end);
}

void release(void* address, size_t bytes) {
  const Ends ends = reservations().at(address);
  reservations().erase(address);
  for (size_t i = 1; i < ends.size(); i++) check(driver().unmap(number(address) + ends[i - 1], ends[i] - ends[i - 1]));
  check(driver().free(number(address), bytes));
}

void upload(void* to, const void* from, size_t bytes) {
  if (!staging) check(cudaHostAlloc(&staging, kStaging, cudaHostAllocPortable));
  for (size_t done = 0; done < bytes;) {
    if (staged == kStaging) synchronize();
    char* const part = static_cast<char*>(staging) + staged;
    const size_t size = std::min(bytes - done, kStaging - staged);
    std::memcpy(part, static_cast<const char*>(from) + done, size);
    check(cudaMemcpyAsync(static_cast<char*>(to) + done, part, size, cudaMemcpyHostToDevice, stream()));
    staged += size, done += size;
  }
}

void download(void* to, const void* from, size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream()));
  synchronize();
}

void copy(void* to, const void* from, size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()));
}

void synchronize() {
  check(cudaStreamSynchronize(stream()));
  staged = 0;
}

void* workspace(size_t bytes) {
  static void* memory = nullptr;
  static size_t size = 0;
  static int device = -1;
  if (bytes > size || device != chosen) {
    synchronize();
    check(cudaFree(memory));
    memory = nullptr, size = 0;
    check(cudaMalloc(&memory, bytes));
    size = bytes, device = chosen;
  }
  return memory;
}

// The device of a thread is 0 at first.
Access::Access() {
  if (only_stream) check(cudaSetDevice(chosen));
}
Access::~Access() = default;

}  // namespace qkv::cuda
