#include "model/batch_slice.h"

#include "core/to_size.h"

namespace qkv {
namespace {

void copy(const Packed& from, int64_t begin, int64_t end, Packed& to) {
  const int32_t first = from.offsets[to_size(begin)], last = from.offsets[to_size(end)];
  const auto assign = [&](const std::vector<int32_t>& values, std::vector<int32_t>& part) {
    if (values.empty()) return part.clear();
    part.assign(values.begin() + first, values.begin() + last);
  };
  assign(from.ids, to.ids);
  assign(from.positions, to.positions);
  assign(from.gaps, to.gaps);
  assign(from.types, to.types);
  to.offsets.assign(from.offsets.begin() + begin, from.offsets.begin() + end + 1);
  for (int32_t& offset : to.offsets) offset -= first;
}

}  // namespace

void copy_sequences(const Batch& batch, int64_t begin, int64_t end, Batch& slice) {
  if (batch.target.sequences() > 0) copy(batch.target, begin, end, slice.target);
  if (batch.source.sequences() > 0) copy(batch.source, begin, end, slice.source);
  if (batch.labels.empty()) return slice.labels.clear(), slice.masked.clear();
  const auto first = batch.labels_before(begin), last = batch.labels_before(end);
  slice.labels.assign(batch.labels.begin() + first, batch.labels.begin() + last);
  if (batch.masked.empty()) return slice.masked.clear();
  slice.masked.assign(batch.masked.begin() + first, batch.masked.begin() + last);
  for (int32_t& token : slice.masked) token -= batch.source.offsets[to_size(begin)];
}

}  // namespace qkv
