// Memory for one training or decoding step: allocated by moving a pointer, released all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "core/to_size.h"
#include "qkv/error.h"
#include "qkv/matrix.h"

namespace qkv {

size_t physical_memory();  // of the machine, in bytes
inline double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Thrown when an arena is exhausted.
class ArenaFull : public Error {
 public:
  using Error::Error;
};

// One reserved range of addresses. Pages are committed the first time they are reached and kept, so after one step of
// the largest size no later step asks the system for memory. Blocks are aligned to 64 bytes and uninitialized.
// Not thread-safe.
class Arena {
 public:
  // Throws Error if the addresses cannot be reserved. The default reserves the machine's physical memory.
  explicit Arena(size_t reserve_bytes = 0);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns `count` elements. Throws ArenaFull when the reservation or the machine's memory is exhausted.
  template <class T>
  T* take(int64_t count) {
    return static_cast<T*>(take_bytes(to_size(count) * sizeof(T)));
  }
  // Returns `count` objects initialized with T(). They are never destroyed.
  template <class T>
  std::span<T> objects(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* first = take<T>(static_cast<int64_t>(count));
    std::uninitialized_value_construct_n(first, count);
    return {first, count};
  }
  std::span<std::byte> bytes(size_t count) { return {static_cast<std::byte*>(take_bytes(count)), count}; }
  template <class T>
  Matrix<T> matrix(int64_t rows, int64_t cols) {
    return {take<T>(rows * cols), rows, cols};
  }
  // Like matrix(), filled with zeros by the host. Layers use zeros() of ops/rows.h.
  template <class T>
  Matrix<T> zeros(int64_t rows, int64_t cols);

  // Gives the whole pages of a part of the arena back to the system. Its contents are lost; it can be used again.
  void forget(void* begin, size_t bytes);

  size_t used() const { return used_; }
  size_t high_water() const { return high_water_; }  // bytes, the most ever used at once

  // Releases everything that was taken during its lifetime.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.used_) {}
    ~Scope() { arena_.used_ = mark_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    size_t mark_;
  };

 private:
  void* take_bytes(size_t bytes);

  char* base_ = nullptr;
  size_t reserved_ = 0;
  size_t committed_ = 0;
  size_t used_ = 0;
  size_t high_water_ = 0;
};

template <class T>
Matrix<T> Arena::zeros(int64_t rows, int64_t cols) {
  Matrix<T> m = matrix<T>(rows, cols);
  for (int64_t i = 0; i < rows * cols; i++) m.data[i] = T();
  return m;
}

}  // namespace qkv
