// Interaction logs from lists of item numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/log/interactions.h"

namespace qkv::testing {

// Returns the log of users "u0", "u1", … with the events `users[i]`, over the items "i0", "i1", …
inline Interactions log_of(const std::vector<std::vector<int32_t>>& users, int64_t items) {
  Interactions log;
  for (int64_t i = 0; i < items; i++) log.items.push_back("i" + std::to_string(i));
  for (const std::vector<int32_t>& events : users) {
    log.users.push_back("u" + std::to_string(log.users.size()));
    log.events.insert(log.events.end(), events.begin(), events.end());
    log.offsets.push_back(std::ssize(log.events));
  }
  return log;
}

}  // namespace qkv::testing
