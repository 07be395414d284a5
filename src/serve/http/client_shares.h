// A resource that clients share: what all may hold, and what one of them may.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace qkv {

// The amounts that clients hold. Thread-safe.
class ClientShares {
 public:
  ClientShares(int64_t most_of_all, int64_t most_of_one) : most_of_all_(most_of_all), most_of_one_(most_of_one) {}

  // Adds to what a client holds. Returns false, and adds nothing, if it or all clients would hold too much. A client
  // that holds nothing may take what is left of everything.
  bool take(const std::string& client, int64_t amount) {
    const std::lock_guard lock(mutex_);
    const auto place = held_.find(client);
    const int64_t own = place == held_.end() ? 0 : place->second;
    if (all_ + amount > most_of_all_ || (own > 0 && own + amount > most_of_one_)) return false;
    held_[client] += amount;
    all_ += amount;
    return true;
  }
  void give_back(const std::string& client, int64_t amount) {
    const std::lock_guard lock(mutex_);
    const auto place = held_.find(client);
    if ((place->second -= amount) == 0) held_.erase(place);
    all_ -= amount;
  }

  int64_t of(const std::string& client) const {
    const std::lock_guard lock(mutex_);
    const auto place = held_.find(client);
    return place == held_.end() ? 0 : place->second;
  }
  int64_t of_all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  int64_t most_of_all() const { return most_of_all_; }
  int64_t most_of_one() const { return most_of_one_; }

 private:
  const int64_t most_of_all_, most_of_one_;
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> held_;  // only amounts above 0
  int64_t all_ = 0;
};

}  // namespace qkv
