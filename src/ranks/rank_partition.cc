#include "ranks/rank_partition.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"
#include "ranks/collectives.h"

namespace qkv {

// Calls read(), and names the rank whose message is invalid.
void RankPartition::as_sent_by(int64_t rank, const std::function<void()>& read) const {
  try {
    read();
  } catch (const Error& error) {
    fail("{}: {}", communicator_->label(static_cast<int>(rank)), error.what());
  }
}

// Sends the results of this rank for its part of `items` items, each of at most `most` bytes. Returns those of each
// rank.
std::vector<std::vector<std::byte>> RankPartition::exchange(std::vector<std::byte> own, int64_t items,
                                                            size_t most) const {
  std::vector<MessageBytes> headers(to_size(ranks()));
  std::vector<ByteParts> header_parts, parts;
  headers[to_size(rank())] = write_part_header({items_of(rank(), items), std::ssize(own)});
  for (MessageBytes& header : headers) header_parts.push_back({std::span<std::byte>(header)});
  share_all(*communicator_, header_parts);
  std::vector<std::vector<std::byte>> results(headers.size());
  results[to_size(rank())] = std::move(own);
  for (int64_t r = 0; r < ranks(); r++) {
    if (r != rank())
      as_sent_by(r, [&] {
        const int64_t limit = static_cast<int64_t>(most);
        results[to_size(r)].resize(to_size(read_part_header(headers[to_size(r)], items_of(r, items), limit).size));
      });
    parts.push_back({std::span(results[to_size(r)])});
  }
  share_all(*communicator_, parts);
  return results;
}

void RankPartition::all_gather_bytes(std::span<std::byte> results, size_t size) const {
  if (ranks() == 1) return;
  const auto items = static_cast<int64_t>(results.size() / size);
  const auto item_of = [&](int64_t item) { return results.subspan(to_size(item) * size, size); };
  std::vector<std::byte> own;
  for_own(items, [&](int64_t item) { own.insert(own.end(), item_of(item).begin(), item_of(item).end()); });
  const std::vector<std::vector<std::byte>> parts = exchange(std::move(own), items, size);
  for (int64_t r = 0; r < ranks(); r++)
    as_sent_by(r, [&] {
      const std::span<const std::byte> part = parts[to_size(r)];
      if (part.size() != to_size(items_of(r, items)) * size) fail("sent a message that is too short");
      for (int64_t item = r, at = 0; item < items; item += ranks(), at++)
        std::ranges::copy(part.subspan(to_size(at) * size, size), item_of(item).begin());
    });
}

void RankPartition::all_gather_lists(std::span<std::vector<int32_t>> results, const ListLimits& limits) const {
  if (ranks() == 1) return;
  const int64_t items = std::ssize(results);
  std::vector<std::byte> own;
  for_own(items, [&](int64_t item) { append_list(results[to_size(item)], limits, own); });
  const std::vector<std::vector<std::byte>> parts = exchange(std::move(own), items, limits.most_bytes());
  for (int64_t r = 0; r < ranks(); r++) {
    if (r == rank()) continue;
    as_sent_by(r, [&] {
      std::span<const std::byte> rest = parts[to_size(r)];
      for (int64_t item = r; item < items; item += ranks()) results[to_size(item)] = take_list(rest, limits);
      if (!rest.empty()) fail("sent {} bytes after its results", rest.size());
    });
  }
}

}  // namespace qkv
