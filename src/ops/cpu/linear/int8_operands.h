// The operands of products in 8 bits. The depth of a product is cut into blocks. In each block a row of the left
// operand has one scale, and so has a column of the right one.
#pragma once

#include "core/arena.h"

namespace qkv {

struct DepthBlocks {
  static constexpr int64_t kMost = 512, kLongest = kMost + 4;  // of equal blocks, and rounded to groups
  int64_t depth;

  int64_t count() const { return (depth + kMost - 1) / kMost; }
  int64_t begin(int64_t block) const { return block == count() ? depth : depth * block / count() / 4 * 4; }
  int64_t groups(int64_t block) const { return (begin(block + 1) - begin(block) + 3) / 4; }  // of four numbers
  int64_t all_groups() const { return (depth + 3) / 4; }
};

// The rows of a matrix [rows, depth] in signed bytes: round(x / scale), ties to even.
struct Int8Rows {
  DepthBlocks blocks;
  int64_t rows, stride;
  int8_t* bytes;     // [rows, stride]
  float* scales;     // [blocks, rows]: max |x| / 127 of the block; NaN if a number is NaN or infinite
  int32_t* offsets;  // [blocks, rows]: −128 Σ bytes of the block

  Int8Rows(int64_t row_count, int64_t depth, Arena& arena)
      : blocks{depth},
        rows(row_count),
        stride(depth / 16 * 16 + 32),  // a vector stored at the last column fits
        bytes(arena.take<int8_t>(rows * stride)),
        scales(arena.take<float>(blocks.count() * rows)),
        offsets(arena.take<int32_t>(blocks.count() * rows)) {}
};

// The columns of a matrix [depth, cols], four numbers after each other. Columns lie in panels of kWidth or, on some
// instruction sets, fewer; a panel of a block is [groups, columns, 4]. As a right operand bytes are unsigned, 128 more
// than round(x / scale). As a left operand, whose rows they are then, they are signed.
struct Int8Columns {
  static constexpr int64_t kWidth = 64;
  static constexpr int64_t kReadBeyond = 15 * kWidth;  // fours after the last that tiles of 16 rows read
  DepthBlocks blocks;
  int64_t cols, stride;
  int32_t* fours;
  float* scales;     // [blocks, stride]
  int32_t* offsets;  // [blocks, stride], as of Int8Rows

  Int8Columns(int64_t depth, int64_t col_count, Arena& arena)
      : blocks{depth},
        cols(col_count),
        stride((cols + 15) / 16 * 16),
        fours(arena.take<int32_t>(blocks.all_groups() * stride + kReadBeyond)),
        scales(arena.take<float>(blocks.count() * stride)),
        offsets(arena.take<int32_t>(blocks.count() * stride)) {}

  int32_t* block(int64_t i) const { return fours + blocks.begin(i) / 4 * stride; }
};

}  // namespace qkv
