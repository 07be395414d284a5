#include "fuzz/arrow_structs.h"

#include <algorithm>
#include <cstring>

namespace qkv::fuzz {
namespace {

constexpr int64_t kMostBytes = 1 << 13, kMostEntries = 1 << 10;
constexpr int kDeepest = 3;

bool has(uint8_t flags, int bit) { return flags >> bit & 1; }

// Returns the bytes of an element of a type that has two buffers; 0 if the type is not one.
int64_t width_of(const std::string& format) {
  if (format.starts_with("td") || format.starts_with("ts")) return format == "tdD" ? 4 : 8;
  switch (format.size() == 1 ? format[0] : 0) {
    case 'c':
    case 'C':
      return 1;
    case 's':
    case 'S':
      return 2;
    case 'i':
    case 'I':
    case 'f':
      return 4;
    case 'l':
    case 'L':
    case 'g':
      return 8;
    default:
      return 0;
  }
}

// The release callback of a struct, which counts its calls.
template <class Node, class Struct>
void release(Struct* value) {
  static_cast<Node*>(value->private_data)->released++;
  value->release = nullptr;
}

}  // namespace

uint8_t ArrowDescription::byte() {
  if (rest_.empty()) return 0;
  const auto found = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return found;
}

int64_t ArrowDescription::number() {
  const auto small = static_cast<int8_t>(byte());
  if (small != -128) return small;
  uint64_t found = 0;
  for (int i = 0; i < 8; i++) found |= uint64_t{byte()} << (8 * i);
  return static_cast<int64_t>(found);
}

std::string_view ArrowDescription::text() {
  const size_t size = byte();
  const std::string_view found = rest_.substr(0, size);
  rest_.remove_prefix(found.size());
  return found;
}

ArrowSchemaNode::ArrowSchemaNode(ArrowDescription& from, int depth) {
  const uint8_t flags = from.byte();
  const auto c_string = [](std::string_view text) { return std::string(text.substr(0, text.find('\0'))); };
  format = c_string(from.text()), name = c_string(from.text());
  const size_t count = depth < kDeepest ? from.byte() % 8 : 0;
  for (size_t i = 0; i < count; i++) {
    children.push_back(std::make_unique<ArrowSchemaNode>(from, depth + 1));
    pointers.push_back(&children.back()->value);
  }
  if (has(flags, 0) && depth < kDeepest) dictionary = std::make_unique<ArrowSchemaNode>(from, depth + 1);
  if (has(flags, 4) && count > 0) pointers.back() = nullptr;
  value.format = has(flags, 1) ? nullptr : format.c_str();
  value.name = has(flags, 2) ? nullptr : name.c_str();
  value.n_children = has(flags, 3) ? -1 : static_cast<int64_t>(count);
  value.children = has(flags, 5) ? nullptr : pointers.data();
  value.dictionary = dictionary ? &dictionary->value : nullptr;
  value.release = release<ArrowSchemaNode, python::ArrowSchema>;
  value.private_data = this;
}

ArrowArrayNode::ArrowArrayNode(ArrowDescription& from, const ArrowSchemaNode& schema) {
  const uint8_t flags = from.byte(), nulls = from.byte();
  value.length = from.number(), value.offset = from.number(), value.null_count = from.number();
  add_buffers(from, schema.format);
  for (size_t i = 0; i < buffers_.size() && i < 8; i++)
    if (has(nulls, static_cast<int>(i))) buffers_[i] = {};
  for (const Buffer& buffer : buffers_) pointers_.push_back(buffer.bytes.get());
  if (has(flags, 1)) pointers_.resize(from.byte() % 8);  // fewer buffers, or more of them, which are null
  for (const auto& child : schema.children) children.push_back(std::make_unique<ArrowArrayNode>(from, *child));
  for (const auto& child : children) child_pointers_.push_back(&child->value);
  if (has(flags, 2)) child_pointers_.resize(from.byte() % 8);
  if (has(flags, 3) && !child_pointers_.empty()) child_pointers_.back() = nullptr;
  if (schema.dictionary && !has(flags, 0)) dictionary = std::make_unique<ArrowArrayNode>(from, *schema.dictionary);
  value.n_buffers = has(flags, 4) ? -1 : static_cast<int64_t>(pointers_.size());
  value.buffers = has(flags, 5) ? nullptr : pointers_.data();
  value.n_children = has(flags, 6) ? -1 : static_cast<int64_t>(child_pointers_.size());
  value.children = has(flags, 7) ? nullptr : child_pointers_.data();
  value.dictionary = dictionary ? &dictionary->value : nullptr;
  value.release = release<ArrowArrayNode, python::ArrowArray>;
  value.private_data = this;
}

std::string_view ArrowArrayNode::buffer(size_t index) const {
  if (index >= pointers_.size() || !pointers_[index]) return {};
  return {buffers_[index].bytes.get(), static_cast<size_t>(buffers_[index].size)};
}

// Adds a buffer of this size with this content, cut or followed by zeros.
void ArrowArrayNode::add(std::string_view content, int64_t size) {
  Buffer& buffer = buffers_.emplace_back();
  if (size < 0 || size > kMostBytes) return;
  buffer = {std::make_unique<char[]>(static_cast<size_t>(size)), size};
  std::ranges::copy(content.substr(0, static_cast<size_t>(size)), buffer.bytes.get());
}

void ArrowArrayNode::add_buffers(ArrowDescription& from, const std::string& format) {
  if (format == "n") return;
  const auto is_small = [](int64_t number) { return number >= 0 && number < kMostEntries; };
  const bool small = is_small(value.length) && is_small(value.offset);
  const int64_t entries = small ? value.length + value.offset : 8 * kMostBytes + 1;
  add(from.text(), (entries + 7) / 8);
  if (format == "+s") return;
  if (format == "vu") return add_views(from, entries);
  if (format == "u" || format == "U") return add_texts(from, entries, format == "u" ? 4 : 8);
  add(from.text(), entries * width_of(format));
}

// Adds offsets, and the text that ends with the last one.
void ArrowArrayNode::add_texts(ArrowDescription& from, int64_t entries, int64_t width) {
  add(from.text(), (entries + 1) * width);
  int64_t last = 0;
  if (const Buffer& offsets = buffers_.back(); offsets.bytes && width == 8) {
    std::memcpy(&last, offsets.bytes.get() + entries * 8, 8);
  } else if (offsets.bytes) {
    int32_t narrow;
    std::memcpy(&narrow, offsets.bytes.get() + entries * 4, 4);
    last = narrow;
  }
  add(from.text(), last);
}

// Adds views, buffers of texts, and the sizes of those.
void ArrowArrayNode::add_views(ArrowDescription& from, int64_t entries) {
  add(from.text(), entries * 16);
  std::vector<int64_t> sizes;
  for (int64_t rest = from.byte() % 4; rest > 0; rest--) {
    const std::string_view text = from.text();
    sizes.push_back(std::ssize(text));
    add(text, sizes.back());
  }
  const int64_t size = std::ssize(sizes) * 8;
  add({reinterpret_cast<const char*>(sizes.data()), static_cast<size_t>(size)}, size);
}

}  // namespace qkv::fuzz
