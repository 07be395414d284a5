// Allocation of the program. It differs from that of the standard library in the error, which states the size.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

// Needs no memory for its text.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::size_t bytes) {
    std::snprintf(text_, sizeof text_, "memory: %zu bytes cannot be allocated", bytes);
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[64];
};

void* checked(void* block, std::size_t bytes) {
  if (!block) throw OutOfMemory(bytes);
  return block;
}

}  // namespace

// The other forms of new and delete call these.
void* operator new(std::size_t bytes) { return checked(std::malloc(std::max<std::size_t>(bytes, 1)), bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  return checked(rounded < bytes ? nullptr : std::aligned_alloc(unit, std::max(rounded, unit)), bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
