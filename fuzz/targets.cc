// The names of the targets. A program has those of its part; the others are null.
#include "fuzz/reader.h"

namespace qkv::fuzz {

#define QKV_DECLARE_WEAK(target) [[gnu::weak]] void fuzz_##target(std::string_view bytes);
QKV_FUZZ_TARGETS(QKV_DECLARE_WEAK)
#undef QKV_DECLARE_WEAK

Read find_target(std::string_view name) {
#define QKV_COMPARE(target) \
  if (name == #target) return fuzz_##target;
  QKV_FUZZ_TARGETS(QKV_COMPARE)
#undef QKV_COMPARE
  return nullptr;
}

}  // namespace qkv::fuzz
