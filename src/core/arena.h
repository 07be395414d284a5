// Memory for one training or decoding step: allocated by moving a pointer, released all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "core/device.h"
#include "core/system/memory_source.h"
#include "core/to_size.h"
#include "qkv/error.h"
#include "qkv/matrix.h"

namespace qkv {

// Thrown when an arena is exhausted.
class ArenaFull : public Error {
 public:
  ArenaFull(const std::string& text, bool on_device) : Error(text), on_device_(on_device) {}
  bool is_on_device() const { return on_device_; }  // whether the memory is that of a device

 private:
  bool on_device_;
};

// One reserved range of addresses. Memory is committed the first time it is reached and kept, so after one step of the
// largest size no later step asks its source for more. Blocks are aligned to 64 bytes. Not thread-safe.
class MemoryRange {
 public:
  // Throws Error if the addresses cannot be reserved.
  MemoryRange(std::shared_ptr<MemorySource> source, size_t reserve_bytes);
  ~MemoryRange();
  MemoryRange(const MemoryRange&) = delete;
  MemoryRange& operator=(const MemoryRange&) = delete;

  void* take(size_t bytes);
  void release_from(size_t mark) { used_ = mark; }
  // Gives the whole pages of a part of the range back to the system. Its contents are lost; it can be used again.
  void forget(void* begin, size_t bytes);

  size_t used() const { return used_; }
  size_t high_water() const { return high_water_; }  // the most ever used at once

 private:
  [[noreturn]] void throw_full(const std::string& text) const;

  std::shared_ptr<MemorySource> source_;
  char* base_ = nullptr;
  size_t reserved_ = 0;
  size_t committed_ = 0;
  size_t used_ = 0;
  size_t high_water_ = 0;
};

// A range of the host's memory and, from the first element of a device on, one of the device's. Blocks are
// uninitialized. Not thread-safe.
class Arena {
 public:
  // Throws Error if the addresses cannot be reserved. The default reserves the memory that the machine has.
  explicit Arena(size_t reserve_bytes = 0);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns `count` elements. Throws ArenaFull when the reservation or the machine's memory is exhausted.
  template <class T>
  T* take(int64_t count) {
    return static_cast<T*>((kOnDevice<T> ? device() : host_).take(to_size(count) * sizeof(T)));
  }
  // Returns `count` objects initialized with T(). They are never destroyed.
  template <class T>
  std::span<T> objects(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* first = take<T>(static_cast<int64_t>(count));
    std::uninitialized_value_construct_n(first, count);
    return {first, count};
  }
  std::span<std::byte> bytes(size_t count) { return {static_cast<std::byte*>(host_.take(count)), count}; }
  template <class T>
  Matrix<T> matrix(int64_t rows, int64_t cols) {
    return {take<T>(rows * cols), rows, cols};
  }
  // Like matrix(), filled with zeros by the host. Layers use zeros() of ops/rows.h.
  template <class T>
  Matrix<T> zeros(int64_t rows, int64_t cols);

  void forget(void* begin, size_t bytes) { host_.forget(begin, bytes); }

  // Bytes of the host's memory, and of the device's.
  size_t used() const { return host_.used(); }
  size_t high_water() const { return host_.high_water(); }
  size_t device_high_water() const { return device_ ? device_->high_water() : 0; }

  // Releases everything that was taken during its lifetime.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), host_(arena.host_.used()), device_(arena.device_used()) {}
    ~Scope() {
      arena_.host_.release_from(host_);
      if (arena_.device_) arena_.device_->release_from(device_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    size_t host_, device_;
  };

 private:
  MemoryRange& device();
  size_t device_used() const { return device_ ? device_->used() : 0; }

  MemoryRange host_;
  std::unique_ptr<MemoryRange> device_;
};

template <class T>
Matrix<T> Arena::zeros(int64_t rows, int64_t cols) {
  Matrix<T> m = matrix<T>(rows, cols);
  for (int64_t i = 0; i < rows * cols; i++) m.data[i] = T();
  return m;
}

}  // namespace qkv
