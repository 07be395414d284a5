#include "recommend/catalogue.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/to_size.h"

namespace qkv {

Catalogue::Catalogue(Interactions log)
    : log_(std::move(log)), items_(std::exchange(log_.items, {})), users_(std::exchange(log_.users, {})) {
  counts_.resize(items_.names().size());
  popular_.resize(counts_.size());
  for (const int32_t item : log_.events) counts_[to_size(item)]++;
  std::iota(popular_.begin(), popular_.end(), 0);
  std::ranges::stable_sort(popular_, std::greater<>(), [&](int32_t item) { return events(item); });
}

std::vector<int32_t> Catalogue::ids(const std::vector<std::string>& names, std::vector<std::string>& unknown) const {
  std::vector<int32_t> ids;
  for (const std::string& name : names)
    if (const int32_t id = items_.find(name); id >= 0)
      ids.push_back(id);
    else
      unknown.push_back(name);
  return ids;
}

Events Catalogue::events(const std::vector<std::string>& names, std::span<const int64_t> times,
                         std::vector<std::string>& unknown) const {
  Events known{ids(names, unknown), {}};
  for (size_t i = 0; i < times.size(); i++)
    if (items_.find(names[i]) >= 0) known.times.push_back(times[i]);
  return known;
}

}  // namespace qkv
