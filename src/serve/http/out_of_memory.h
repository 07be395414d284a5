// A lack of memory, which must not end the server.
#pragma once

#include <new>
#include <utility>

namespace qkv {

// Calls a function. Returns false if it threw std::bad_alloc.
template <class Function>
bool run_unless_out_of_memory(Function&& function) {
  try {
    std::forward<Function>(function)();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace qkv
