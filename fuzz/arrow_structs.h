// Structs of the Arrow C data interface that bytes describe. The interface has pointers without sizes: buffers have
// exactly the sizes that the specification states for the type, length, offset and offsets of an array, so that a read
// beyond one is found. A buffer that would be larger than 8 KiB is null.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "python/src/arrow_abi.h"

namespace qkv::fuzz {

// Reads a description; zeros follow its end.
class ArrowDescription {
 public:
  explicit ArrowDescription(std::string_view bytes) : rest_(bytes) {}

  uint8_t byte();
  int64_t number();         // a byte with a sign; −128: the eight bytes that follow
  std::string_view text();  // a byte with its length, and its bytes

 private:
  std::string_view rest_;
};

// A schema with its children and its dictionary.
struct ArrowSchemaNode {
  explicit ArrowSchemaNode(ArrowDescription& from, int depth = 0);

  std::string format, name;
  std::vector<std::unique_ptr<ArrowSchemaNode>> children;
  std::unique_ptr<ArrowSchemaNode> dictionary;
  std::vector<python::ArrowSchema*> pointers;  // to the children
  python::ArrowSchema value = {};
  int released = 0;
};

// An array of a schema.
class ArrowArrayNode {
 public:
  ArrowArrayNode(ArrowDescription& from, const ArrowSchemaNode& schema);

  // Returns the bytes of a buffer; none if it is null or missing.
  std::string_view buffer(size_t index) const;

  std::vector<std::unique_ptr<ArrowArrayNode>> children;
  std::unique_ptr<ArrowArrayNode> dictionary;
  python::ArrowArray value = {};
  int released = 0;

 private:
  struct Buffer {
    std::unique_ptr<char[]> bytes;  // null for a null pointer
    int64_t size = 0;
  };
  void add(std::string_view content, int64_t size);
  void add_buffers(ArrowDescription& from, const std::string& format);
  void add_texts(ArrowDescription& from, int64_t entries, int64_t width);
  void add_views(ArrowDescription& from, int64_t entries);

  std::vector<Buffer> buffers_;
  std::vector<const void*> pointers_;  // to the buffers
  std::vector<python::ArrowArray*> child_pointers_;
};

}  // namespace qkv::fuzz
