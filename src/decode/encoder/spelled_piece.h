// Tokens of an encoder as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/text_codec.h"

namespace qkv {

inline constexpr std::string_view kWordStart = "▁";

// Returns the spelling of a token of pieces of any kind, which begins with kWordStart if it begins a word. A piece of a
// word list continues a word if it begins with its mark, usually "##".
std::string spelled_piece(const TextCodec& codec, int32_t id);

}  // namespace qkv
