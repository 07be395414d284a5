#include "decode/generation/spelled_tokens.h"

#include <algorithm>

#include "text/visible.h"

namespace qkv {

std::vector<std::string> spelled_tokens(const LanguageRun& run, std::span<const int32_t> ids) {
  std::vector<std::string> pieces;
  for (const int32_t id : ids) {
    pieces.push_back(visible(run.codec.decode({&id, 1}, false)));
    if (!pieces.back().empty()) continue;
    const bool ends = std::ranges::find(run.ends.ends, id) != run.ends.ends.end();
    pieces.back() = id == run.ends.start ? "<s>" : ends ? "</s>" : visible(run.codec.piece(id));
  }
  return pieces;
}

}  // namespace qkv
