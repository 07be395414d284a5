// The names of a run's items and users, and the number of events of each item.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "data/log/interactions.h"
#include "data/log/name_table.h"

namespace qkv {

class Catalogue {
 public:
  explicit Catalogue(Interactions log);

  const NameTable& items() const { return items_; }
  const NameTable& users() const { return users_; }
  History history_of(int32_t user) const { return log_.history(user); }

  // Returns the ids of the known items, in order, and appends the other names to `unknown`.
  std::vector<int32_t> ids(const std::vector<std::string>& names, std::vector<std::string>& unknown) const;

  // Converts a history likewise. times: empty, or the time of each event.
  Events events(const std::vector<std::string>& names, std::span<const int64_t> times,
                std::vector<std::string>& unknown) const;

  // Returns items in descending order of their number of events; ties are in order of id.
  std::span<const int32_t> popular() const { return popular_; }
  int64_t events(int32_t item) const { return counts_[to_size(item)]; }

 private:
  Interactions log_;  // without its names
  NameTable items_, users_;
  std::vector<int64_t> counts_;  // events of each item
  std::vector<int32_t> popular_;
};

}  // namespace qkv
