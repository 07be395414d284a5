// Arenas that calls borrow. Their pages stay committed for the next call.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/arena.h"

namespace qkv {

class ArenaPool {
 public:
  // Exclusive use of `count` arenas for its lifetime.
  class Lease {
   public:
    Lease(ArenaPool& pool, size_t count) : pool_(pool) {
      {
        const std::lock_guard lock(pool_.mutex_);
        while (arenas_.size() < count && !pool_.free_.empty()) {
          arenas_.push_back(std::move(pool_.free_.back()));
          pool_.free_.pop_back();
        }
      }
      while (arenas_.size() < count) arenas_.push_back(std::make_unique<Arena>());
    }
    ~Lease() {
      const std::lock_guard lock(pool_.mutex_);
      for (auto& arena : arenas_) pool_.free_.push_back(std::move(arena));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    std::vector<Arena*> arenas() const {
      std::vector<Arena*> result;
      for (const auto& arena : arenas_) result.push_back(arena.get());
      return result;
    }
    Arena& front() const { return *arenas_.front(); }

   private:
    ArenaPool& pool_;
    std::vector<std::unique_ptr<Arena>> arenas_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> free_;
};

}  // namespace qkv
