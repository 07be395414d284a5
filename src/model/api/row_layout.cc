#include "model/api/row_layout.h"

#include <algorithm>
#include <limits>

#include "core/fail.h"

namespace qkv::layers {
namespace {

constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();

void check_offsets(const std::vector<int32_t>& offsets, int64_t rows, const std::string& where) {
  if (offsets.front() != 0 || offsets.back() != rows)
    fail("{}: offsets must be from 0 to {}, the number of rows (are from {} to {})", where, rows, offsets.front(),
         offsets.back());
  if (const auto falls = std::ranges::adjacent_find(offsets, std::greater<>()); falls != offsets.end())
    fail("{}: offsets must not decrease ({} is followed by {})", where, *falls, *(falls + 1));
}

void check_lengths(const Rows& rows, int64_t given, const std::string& where) {
  const int64_t batch = static_cast<int64_t>(rows.lengths.size());
  if (rows.width < 0 || rows.width > kMaxRows || batch * rows.width != given)
    fail("{}: expected rows for {} lengths in a batch of width {}, found {} rows", where, batch, rows.width, given);
  for (const int32_t length : rows.lengths)
    if (length < 0 || length > rows.width)
      fail("{}: lengths must be from 0 to {}, the width of the batch (found {})", where, rows.width, length);
}

}  // namespace

RowLayout::RowLayout(const Rows& rows, int64_t n, const std::string& where) : given(n) {
  if (n > kMaxRows) fail("{}: at most {} rows are possible (has {})", where, kMaxRows, n);
  if (!rows.offsets.empty() && rows.width > 0) fail("{}: rows must be packed or padded, not both", where);
  if (rows.width > 0 || !rows.lengths.empty()) {
    check_lengths(rows, n, where);
    offsets = {0};
    for (const int32_t length : rows.lengths) offsets.push_back(offsets.back() + length);
    const auto place = [&](size_t s) { return static_cast<int64_t>(s) * rows.width; };
    if (packed() < n)
      for (size_t s = 0; s < rows.lengths.size(); s++)
        for (int64_t i = 0; i < rows.lengths[s]; i++) places.push_back(static_cast<int32_t>(place(s) + i));
  } else if (rows.offsets.empty()) {
    offsets = {0, static_cast<int32_t>(n)};
  } else {
    check_offsets(rows.offsets, n, where);
    offsets = rows.offsets;
  }
  for (int64_t s = 0; s < sequences(); s++)
    for (int64_t i = 0; i < length(s); i++) positions.push_back(static_cast<int32_t>(i));
}

int64_t RowLayout::longest() const {
  int64_t longest = 0;
  for (int64_t s = 0; s < sequences(); s++) longest = std::max(longest, length(s));
  return longest;
}

Sequences sequences_between(const RowLayout& queries, const RowLayout& keys) {
  const int32_t *q = queries.offsets.data(), *k = keys.offsets.data();
  return {queries.sequences(), q, q + 1, k, k + 1};
}

}  // namespace qkv::layers
