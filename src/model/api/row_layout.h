// The sequences in the rows of an input of a module. Padded batches are packed first: the layers know no padding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/arena.h"
#include "ops/rows.h"
#include "qkv/attention.h"
#include "qkv/layers.h"

namespace qkv::layers {

struct RowLayout {
  int64_t given = 0;               // rows of the input
  std::vector<int32_t> offsets;    // of the packed sequences: [sequences + 1]
  std::vector<int32_t> positions;  // of each packed row in its sequence
  std::vector<int32_t> places;     // of each packed row in the input; empty if all rows belong to a sequence

  // Throws Error that begins with `where` unless `rows` fits to an input with this number of rows.
  RowLayout(const Rows& rows, int64_t given, const std::string& where);

  int64_t sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t packed() const { return offsets.back(); }
  int64_t length(int64_t s) const { return offsets[to_size(s) + 1] - offsets[to_size(s)]; }
  int64_t longest() const;

  // Returns the rows of x that belong to a sequence.
  template <class Real>
  Matrix<const Real> pack(Matrix<const Real> x, Arena& arena) const {
    if (packed() == given) return x;
    const Matrix<Real> y = arena.matrix<Real>(packed(), x.cols);
    gather_rows<Real>(x, places, y);
    return y;
  }
  // Returns the rows at their places in the input, with zeros in between.
  template <class Real>
  Matrix<const Real> unpack(Matrix<const Real> x, Arena& arena) const {
    if (packed() == given) return x;
    const Matrix<Real> y = zeros<Real>(arena, given, x.cols);
    scatter_rows<Real>(x, places, y);
    return y;
  }
};

// Queries in the sequences of `queries` that see keys in those of `keys`.
Sequences sequences_between(const RowLayout& queries, const RowLayout& keys);

}  // namespace qkv::layers
