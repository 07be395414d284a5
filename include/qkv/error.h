// The exception type of the library.
#pragma once

#include <stdexcept>
#include <string>

namespace [[gnu::visibility("default")]] qkv {

// Reports every error in a call, an option or a file. what() is one line that names the op, file, option or tensor,
// what was found and what is accepted. The library never prints and never exits.
class Error : public std::runtime_error {
 public:
  // Replaces control characters, which names of files may have, by "?".
  explicit Error(std::string text);
};

}  // namespace qkv
