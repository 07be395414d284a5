// A batch of packed token ids, the interface between data and model. There is no padding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/to_size.h"

namespace qkv {

// Consecutive sequences: sequence s is ids[offsets[s]] … ids[offsets[s + 1] − 1].
struct Packed {
  std::vector<int32_t> ids;
  std::vector<int32_t> offsets = {0};
  std::vector<int32_t> positions;  // position of each token in its sequence, from 0 unless given
  std::vector<int32_t> gaps;       // bucket of the time before each token; empty if the model does not use it
  std::vector<int32_t> types;      // type of each token, such as the segment of a pair; empty if all are 0

  int64_t sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  std::span<const int32_t> sequence(int64_t s) const {
    const int32_t *begin = offsets.data() + s, *end = begin + 1;
    return std::span(ids).subspan(to_size(*begin), to_size(*end - *begin));
  }
  // Returns the sequences of these tokens, each once.
  std::vector<int64_t> sequences_of(std::span<const int64_t> tokens) const {
    std::vector<int64_t> found;
    for (const int64_t token : tokens) {
      const int64_t s = std::upper_bound(offsets.begin(), offsets.end(), token) - offsets.begin() - 1;
      if (std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
    }
    return found;
  }
  void clear() {
    ids.clear();
    offsets.assign(1, 0);
    positions.clear();
    gaps.clear();
    types.clear();
  }
  void append(std::span<const int32_t> sequence, int64_t first_position = 0) {
    for (size_t i = 0; i < sequence.size(); i++) {
      ids.push_back(sequence[i]);
      positions.push_back(static_cast<int32_t>(first_position + static_cast<int64_t>(i)));
    }
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
};

// One batch for teacher forcing: the decoder reads `target` (beginning with the start token) and predicts `labels`
// (ending with the end token), one label per token of target. A decoder-only model has no source. An encoder-only
// model has no target: it reads `source` and predicts a label for each token in `masked`, indices into source in
// increasing order.
struct Batch {
  Packed source, target;
  std::vector<int32_t> labels, masked = {};

  // Returns the side whose tokens have labels.
  const Packed& labelled() const { return target.sequences() > 0 ? target : source; }
  // Returns the number of labels before those of sequence s.
  int64_t labels_before(int64_t s) const {
    const int32_t token = labelled().offsets[to_size(s)];
    if (target.sequences() > 0) return token;
    return std::lower_bound(masked.begin(), masked.end(), token) - masked.begin();
  }

  void clear() {
    source.clear();
    target.clear();
    labels.clear();
    masked.clear();
  }
};

}  // namespace qkv
