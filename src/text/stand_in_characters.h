// Characters that stand for something else in the texts of a model that is trained with them. They are of Unicode's
// private use area, near its end, where hardly any font has a character. Where a user's text has one all the same, it
// is a protected part.
#pragma once

#include <array>
#include <string_view>

namespace qkv {

// Each stands for a protected part, in a source and in its translation.
inline constexpr std::array<std::string_view, 8> kStandIns = {"\U0010FF01", "\U0010FF02", "\U0010FF03", "\U0010FF04",
                                                              "\U0010FF05", "\U0010FF06", "\U0010FF07", "\U0010FF08"};

// Stand before and after the translation of a term, which follows it in a source.
inline constexpr std::array<std::string_view, 2> kTermMarks = {"\U0010FF11", "\U0010FF12"};

}  // namespace qkv
