// A range of the bytes of a text.
#pragma once

#include <cstddef>

namespace qkv {

// Bytes from begin to end − 1.
struct ByteRange {
  size_t begin = 0, end = 0;

  size_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

}  // namespace qkv
