// The last step in reading the inline items of Markdown, when all of a part are known.
#pragma once

#include <vector>

#include "documents/inline_run.h"
#include "documents/split_text.h"

namespace qkv {

// Makes single items of elements that are not closed or not opened, and of addresses that are no links for md4c. Marks
// of emphasis whose runs are partly text become text.
void settle_markdown_run(const SplitText& document, std::vector<RunItem>& run);

}  // namespace qkv
