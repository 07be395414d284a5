#include "documents/split_text.h"

#include "core/fail.h"

namespace qkv {

std::string join(const SplitText& document, std::span<const std::string> replacements) {
  if (replacements.size() != document.parts.size())
    fail("a text of {} parts needs as many replacements (has {})", document.parts.size(), replacements.size());
  std::string joined;
  size_t done = 0;
  for (size_t i = 0; i < replacements.size(); i++) {
    joined += document.slice(done, document.parts[i].begin);
    joined += replacements[i];
    done = document.parts[i].end;
  }
  joined += document.slice(done, document.bytes.size());
  return joined;
}

}  // namespace qkv
