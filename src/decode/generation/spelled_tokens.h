// Tokens of a language model as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/runs/run_kinds.h"

namespace qkv {

// Returns each token as it is displayed, with "▁" for a space. A token without text of its own has its spelling in the
// vocabulary, or is "<s>" or "</s>".
std::vector<std::string> spelled_tokens(const LanguageRun& run, std::span<const int32_t> ids);

}  // namespace qkv
