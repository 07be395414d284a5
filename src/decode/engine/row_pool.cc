#include "decode/engine/row_pool.h"

#include <algorithm>
#include <iterator>

#include "core/to_size.h"

namespace qkv {
namespace {

// Calls f(block, rows) for each block that the range overlaps, with the number of rows in it.
template <class F>
void for_blocks(RowRange range, F&& f) {
  for (int64_t begin = range.begin; begin < range.end;) {
    const int64_t block = begin / RowBlocks::kRows, end = std::min(range.end, (block + 1) * RowBlocks::kRows);
    f(to_size(block), end - begin);
    begin = end;
  }
}

}  // namespace

void RowBlocks::use(RowRange range) {
  if (range.end > std::ssize(blocks_) * kRows) blocks_.resize(to_size((range.end + kRows - 1) / kRows));
  for_blocks(range, [&](size_t block, int64_t rows) {
    blocks_[block].used += rows;
    blocks_[block].touched = true;
    blocks_[block].unused_since.reset();
  });
}

void RowBlocks::give_back(RowRange range) {
  for_blocks(range, [&](size_t block, int64_t rows) { blocks_[block].used -= rows; });
}

std::vector<RowRange> RowBlocks::unused(Clock::time_point now) {
  std::vector<RowRange> result;
  for (size_t i = 0; i < blocks_.size(); i++) {
    Block& block = blocks_[i];
    if (block.used > 0 || !block.touched) continue;
    if (!block.unused_since) block.unused_since = now;
    if (now - *block.unused_since < kUnusedTime) continue;
    block = {};
    const int64_t begin = static_cast<int64_t>(i) * kRows;
    result.push_back({begin, begin + kRows});
  }
  return result;
}

int32_t RowPool::take() {
  while (first_ < free_.size() && free_[first_].empty()) first_++;
  if (first_ == free_.size()) {
    std::vector<int32_t>& rows = free_.emplace_back();
    for (int64_t row = rows_ + RowBlocks::kRows; row-- > rows_;) rows.push_back(static_cast<int32_t>(row));
    rows_ += RowBlocks::kRows;
  }
  const int32_t row = free_[first_].back();
  free_[first_].pop_back();
  blocks_.use({row, row + 1});
  used_++;
  return row;
}

void RowPool::give_back(std::span<const int32_t> rows) {
  for (const int32_t row : rows) {
    const size_t block = to_size(row / RowBlocks::kRows);
    free_[block].push_back(row);
    first_ = std::min(first_, block);
    blocks_.give_back({row, row + 1});
  }
  used_ -= std::ssize(rows);
}

bool RangePool::has(int64_t rows) const {
  return rows == 0 || std::ranges::any_of(free_, [&](const auto& range) { return range.second - range.first >= rows; });
}

RowRange RangePool::take(int64_t rows) {
  if (rows == 0) return {};
  const auto free = std::ranges::find_if(free_, [&](const auto& range) { return range.second - range.first >= rows; });
  const RowRange taken{free->first, free->first + rows};
  const int64_t end = free->second;
  free_.erase(free);
  if (taken.end < end) free_.emplace(taken.end, end);
  blocks_.use(taken);
  return taken;
}

void RangePool::give_back(RowRange range) {
  if (range.begin == range.end) return;
  blocks_.give_back(range);
  auto next = free_.lower_bound(range.begin);
  if (next != free_.end() && next->first == range.end) {
    range.end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->second == range.begin)
    std::prev(next)->second = range.end;
  else
    free_.emplace(range.begin, range.end);
}

}  // namespace qkv
