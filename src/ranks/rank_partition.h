// Work that is dealt out to ranks: rank r of R does the items r, r + R, r + 2 R, …, and all ranks get all results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "ranks/communicator.h"
#include "ranks/rank_messages.h"

namespace qkv {

class RankPartition {
 public:
  RankPartition() = default;  // one process does all items
  explicit RankPartition(Communicator& communicator) : communicator_(&communicator) {}

  int64_t rank() const { return communicator_ ? communicator_->rank() : 0; }
  int64_t ranks() const { return communicator_ ? communicator_->size() : 1; }
  bool owns(int64_t item) const { return item % ranks() == rank(); }

  // Calls f(item) for each of `items` items that this rank does.
  template <class F>
  void for_own(int64_t items, F&& f) const {
    for (int64_t item = rank(); item < items; item += ranks()) f(item);
  }

  // Complete the results of all items, of which this rank has set those of its own. All ranks call the same function
  // with the same number of items and the same limits. Throws Error, naming the rank, if it sent a result that is
  // outside the limits. Values of type T are not checked.
  template <class T>
  void all_gather(std::span<T> results) const {
    static_assert(std::is_trivially_copyable_v<T>);
    all_gather_bytes(std::as_writable_bytes(results), sizeof(T));
  }
  void all_gather_lists(std::span<std::vector<int32_t>> results, const ListLimits& limits) const;

  // Calls check(item) for each item of another rank. An Error that it throws gets the name of that rank.
  template <class F>
  void check_received(int64_t items, F&& check) const {
    for (int64_t item = 0; item < items; item++)
      if (!owns(item)) as_sent_by(item % ranks(), [&] { check(item); });
  }

 private:
  void all_gather_bytes(std::span<std::byte> results, size_t size) const;
  void as_sent_by(int64_t rank, const std::function<void()>& read) const;
  int64_t items_of(int64_t rank, int64_t items) const { return (items - rank + ranks() - 1) / ranks(); }
  std::vector<std::vector<std::byte>> exchange(std::vector<std::byte> own, int64_t items, size_t most) const;

  Communicator* communicator_ = nullptr;
};

}  // namespace qkv
