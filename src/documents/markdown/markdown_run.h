// Changes of the inline items of Markdown by the items around them.
#pragma once

#include <cstddef>
#include <vector>

#include "documents/inline_run.h"
#include "documents/split_text.h"

namespace qkv {

// Takes the role of reStructuredText ({role}`x`) off the end of the last text, if one stands before a code span that
// begins here. Returns where the code span and its role begin.
size_t take_markdown_role(const SplitText& document, std::vector<RunItem>& run, size_t code);

// Makes single items of elements that are not closed or not opened, and of addresses that are no links for md4c. If a
// run of marks of emphasis is partly text, all of it becomes text.
void settle_markdown_run(const SplitText& document, std::vector<RunItem>& run);

}  // namespace qkv
