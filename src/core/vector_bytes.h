// The memory that vectors hold.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace qkv {

template <class T>
size_t vector_bytes(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

// Includes the characters of those that are too long for a string's own bytes.
inline size_t vector_bytes(const std::vector<std::string>& texts) {
  size_t bytes = texts.capacity() * sizeof(std::string);
  const size_t inside = std::string().capacity();
  for (const std::string& text : texts)
    if (text.capacity() > inside) bytes += text.capacity() + 1;
  return bytes;
}

}  // namespace qkv
