// Copies to shared memory that a thread does not wait for at once. They are done when it waits for them, so that a
// kernel which reads the memory before reads something else.
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "matrix_instructions.h"

namespace qkv::cuda::emulator {
namespace {

struct Copy {
  void* to;
  const void* from;
  int bytes;
};
using Group = std::vector<Copy>;

// The groups of a thread; the last one has not ended.
std::deque<Group>& groups() {
  static std::array<std::deque<Group>, 1024> of_thread;
  std::deque<Group>& found = of_thread.at(threadIdx.x);
  if (found.empty()) found.emplace_back();
  return found;
}

}  // namespace

void keep_copy(void* to, const void* from, int bytes) { groups().back().push_back({to, from, bytes}); }

void end_copies() { groups().emplace_back(); }

void do_copies(int left) {
  std::deque<Group>& all = groups();
  for (; std::ssize(all) > left + 1; all.pop_front())
    for (const Copy& copy : all.front()) {
      std::memset(copy.to, 0, 16);
      if (copy.bytes > 0) std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
    }
}

}  // namespace qkv::cuda::emulator
