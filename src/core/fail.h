// fail("{}: found {}, expected {}", ...) throws qkv::Error with a formatted line.
#pragma once

#include <fmt/format.h>

#include "qkv/error.h"

namespace qkv {

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace qkv
