// How Markdown spells the characters of its texts.
#pragma once

#include "documents/split_text.h"

namespace qkv {

// Texts are read with their escapes (`\*`) and references (`&amp;`). In a translation, characters that would be markup
// get a backslash: "`", "[" and "]" always, others where they can be: "a * b", "snake_case", "1 < 2" and "AT&T" stay.
extern const TextSpelling kMarkdownBlockSpelling;    // of a part at the beginning of a paragraph: "#", "1." and others
extern const TextSpelling kMarkdownInlineSpelling;   // of a part behind other characters of its line
extern const TextSpelling kMarkdownHeadingSpelling;  // of a line that "#" begins, and may end
extern const TextSpelling kMarkdownCellSpelling;     // of a table, whose cells "|" separates

}  // namespace qkv
