// Version and active instruction set in one line.
#include <fmt/format.h>

#include "core/system/isa.h"
#include "qkv/system.h"

namespace qkv {

std::string version() { return fmt::format("qkv {} ({})", QKV_VERSION, active_isa()); }

}  // namespace qkv
