#include "chat/marked_text.h"

#include <algorithm>
#include <utility>

namespace qkv {
namespace {

// Returns the first range that ends behind `place`.
std::vector<ByteRange>::const_iterator first_behind(const std::vector<ByteRange>& ranges, size_t place) {
  return std::ranges::upper_bound(ranges, place, {}, &ByteRange::end);
}

void add_range(std::vector<ByteRange>& ranges, size_t begin, size_t end) {
  if (begin == end) return;
  if (!ranges.empty() && ranges.back().end == begin)
    ranges.back().end = end;
  else
    ranges.push_back({begin, end});
}

}  // namespace

MarkedText MarkedText::of_data(std::string text) {
  MarkedText marked{std::move(text), {}};
  add_range(marked.data, 0, marked.size());
  return marked;
}

bool MarkedText::has_data_in(size_t begin, size_t end) const {
  const auto range = first_behind(data, begin);
  return range != data.end() && range->begin < end;
}

void MarkedText::append(std::string_view text, bool is_data) {
  const size_t begin = bytes.size();
  bytes += text;
  if (is_data) add_range(data, begin, bytes.size());
}

void MarkedText::append(const MarkedText& other, size_t begin, size_t end) {
  const size_t at = bytes.size();
  bytes.append(other.bytes, begin, end - begin);
  for (auto range = first_behind(other.data, begin); range != other.data.end() && range->begin < end; range++)
    add_range(data, at + std::max(range->begin, begin) - begin, at + std::min(range->end, end) - begin);
}

MarkedText MarkedText::part(size_t begin, size_t end) const {
  MarkedText result;
  result.append(*this, begin, end);
  return result;
}

}  // namespace qkv
