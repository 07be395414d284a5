// A text that knows which of its bytes came from data (messages, tools) and which a template wrote. Only what the
// template wrote may become a control token.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_range.h"

namespace qkv {

struct MarkedText {
  std::string bytes = {};            // valid UTF-8
  std::vector<ByteRange> data = {};  // from data, in order, neither empty nor adjacent

  static MarkedText of_template(std::string text) { return {std::move(text), {}}; }
  static MarkedText of_data(std::string text);

  size_t size() const { return bytes.size(); }
  bool has_data() const { return !data.empty(); }
  // Returns whether bytes in [begin, end) came from data.
  bool has_data_in(size_t begin, size_t end) const;

  void append(std::string_view text, bool is_data);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  void append(const MarkedText& other, size_t begin, size_t end);
  MarkedText part(size_t begin, size_t end) const;
};

}  // namespace qkv
