// Files to translate: plain text, HTML and subtitles.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "documents/split_text.h"

namespace qkv {

inline constexpr std::array<std::string_view, 3> kTextFileExtensions = {".txt", ".html", ".srt"};

// Returns the format of a file by the end of its name, in any case; nullopt if it is not one of kTextFileExtensions.
std::optional<TextFormat> format_of_file(std::string_view name);

// Splits a text. Throws Error if it is not valid UTF-8.
SplitText split_text(TextFormat format, std::string text);

}  // namespace qkv
