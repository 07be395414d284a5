// An HTTP request that is refused: a status and one line about what was wrong.
#pragma once

#include <fmt/format.h>

#include "qkv/error.h"

namespace qkv {

// After a malformed request nobody knows where the next one begins, so the connection is closed.
struct HttpError : Error {
  HttpError(int code, const std::string& message) : Error(message), status(code) {}

  int status;
};

template <class... Args>
[[noreturn]] void refuse(int status, fmt::format_string<Args...> format, Args&&... args) {
  throw HttpError(status, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace qkv
