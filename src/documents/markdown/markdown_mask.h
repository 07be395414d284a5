// Markdown of other dialects as CommonMark in which every byte keeps its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "documents/split_text.h"

namespace qkv {

struct MarkdownInsertion {
  size_t at = 0;  // byte of the document
  std::string_view text = {};
};

// A document in which marks that md4c does not know are replaced by marks that it knows, without a change of length:
//
// - The front matter, lines that begin with ":::", "[!NOTE]" in a quote and pandoc's title block become blank.
// - The label of a footnote's definition, ": " of a definition list and "!!! note" become the mark of a list's item.
// - Formulas ($x$, $$x$$), templates ({{x}}, {%x%}), attributes ({#x}, {.x}), references to footnotes and sources
//   ([^x], [@x]), [[x]], [TOC] and :emoji: become punctuation.
//
// md4c reads a table only behind a blank line, with three dashes for each column. The missing ones are inserted.
struct MaskedMarkdown {
  std::string bytes = {};
  std::vector<ByteRange> kept = {};                // what became punctuation, in order
  std::vector<MarkdownInsertion> insertions = {};  // in order
  size_t front_matter_end = 0;
};

// Takes time linear in the size of the document.
MaskedMarkdown mask_markdown(std::string_view document);

}  // namespace qkv
