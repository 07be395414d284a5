#include "data/log/history.h"

#include <algorithm>

#include "core/to_size.h"

namespace qkv {

void append_history(const History& history, const HistoryOptions& options, Packed& packed) {
  const size_t longest = to_size(options.max_length), T = std::min(history.items.size(), longest);
  packed.append(history.items.last(T), options.positions_from_end ? static_cast<int64_t>(longest - T) : 0);
  if (!options.gaps) return;
  for (size_t i = history.items.size() - T; i < history.items.size(); i++)
    packed.gaps.push_back(i > 0 && !history.times.empty() ? gap_bucket(history.times[i - 1], history.times[i]) : 0);
}

}  // namespace qkv
