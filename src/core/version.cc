// Version and active instruction set in one line.
#include "qkv/version.h"

#include <fmt/format.h>

#include "core/system/isa.h"

namespace qkv {

std::string version() { return fmt::format("qkv {} ({})", QKV_VERSION, active_isa()); }

}  // namespace qkv
