// Free and used rows of a table, counted in blocks, so that the memory of unused blocks can be given back to the
// system.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "model/inference/row_range.h"

namespace qkv {

// The number of used rows in each block.
class RowBlocks {
 public:
  static constexpr int64_t kRows = 1024;                  // of a block
  static constexpr std::chrono::seconds kUnusedTime{10};  // after which a block goes back to the system

  void use(RowRange rows);
  void give_back(RowRange rows);

  // Returns the blocks that were used before and have been unused for kUnusedTime, each once. A block counts as unused
  // from the first call that finds it so.
  std::vector<RowRange> unused(Clock::time_point now);

 private:
  struct Block {
    int64_t used = 0;
    bool touched = false;
    std::optional<Clock::time_point> unused_since = {};
  };
  std::vector<Block> blocks_;
};

// Hands out single rows, those of the first blocks first.
class RowPool {
 public:
  int32_t take();
  void give_back(std::span<const int32_t> rows);

  int64_t rows() const { return rows_; }  // returns the number of rows up to the last one ever taken, in whole blocks
  int64_t used() const { return used_; }  // returns the number of rows that are taken
  std::vector<RowRange> unused(Clock::time_point now) { return blocks_.unused(now); }

 private:
  int64_t rows_ = 0, used_ = 0;
  std::vector<std::vector<int32_t>> free_;  // of each block
  size_t first_ = 0;                        // no block before it has a free row
  RowBlocks blocks_;
};

// Hands out ranges of consecutive rows: the first one that is long enough.
class RangePool {
 public:
  explicit RangePool(int64_t rows) { free_.emplace(0, rows); }

  bool has(int64_t rows) const;  // returns whether there is a range of this length
  RowRange take(int64_t rows);   // requires one
  void give_back(RowRange range);
  std::vector<RowRange> unused(Clock::time_point now) { return blocks_.unused(now); }

 private:
  std::map<int64_t, int64_t> free_;  // the end of each free range by its begin
  RowBlocks blocks_;
};

}  // namespace qkv
