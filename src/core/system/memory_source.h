// Where arenas get their memory from: the host, or a device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace qkv {

// Reserved addresses get memory from their beginning on.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Returns addresses for `bytes`, a multiple of 2 MiB. Throws Error if they cannot be reserved.
  virtual void* reserve(size_t bytes) = 0;
  virtual void release(void* base, size_t bytes) noexcept = 0;
  // Gives bytes [begin, end) of a reservation memory of zeros. Returns false if there is no more.
  virtual bool commit(void* base, size_t begin, size_t end) = 0;
  // Returns the device that it belongs to, and why the last commit() failed, in one line each; "" for the host.
  virtual std::string device() const { return ""; }
  virtual std::string error() const { return ""; }
  // Takes memory away from whole pages within [begin, end), which are zeros when they are used again.
  virtual void forget(void*, size_t /*begin*/, size_t /*end*/) noexcept {}
  // Returns how many bytes there are.
  virtual size_t bytes() const = 0;
};

// `begin` of commit() is a multiple of this.
constexpr size_t kMemoryStep = size_t{32} << 20;

size_t physical_memory();  // of the machine, in bytes
inline double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::shared_ptr<MemorySource> host_memory();

// The memory of the device that is in use. Throws Error if none is.
std::shared_ptr<MemorySource> device_memory();
void set_device_memory(std::shared_ptr<MemorySource> source);  // null: none

}  // namespace qkv
