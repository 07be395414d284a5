// The name of this machine.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace qkv {

// Returns at most 255 bytes; "" if the machine has no name.
inline std::string host_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

}  // namespace qkv
