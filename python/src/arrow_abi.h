// The structs of the Arrow C data interface, as its specification defines them. A null `release` marks one that was
// moved away or released.
#pragma once

#include <cstdint>

namespace qkv::python {

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  ArrowSchema **children, *dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray **children, *dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

// One of these structs, released at the end.
template <class Struct>
struct ArrowOwner {
  Struct value = {};

  ArrowOwner() = default;
  ArrowOwner(const ArrowOwner&) = delete;
  ArrowOwner& operator=(const ArrowOwner&) = delete;
  ~ArrowOwner() { reset(); }
  void reset() {
    if (value.release) value.release(&value);
    value = {};
  }
  // Takes the struct over; the source is marked as moved away.
  void take(Struct& source) {
    reset();
    value = source;
    source.release = nullptr;
  }
};

}  // namespace qkv::python
