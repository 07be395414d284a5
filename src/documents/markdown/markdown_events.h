// Markdown as a sequence of blocks, spans and texts, read by md4c.
//
// md4c is a parser in C that passes texts as pointers into the document, so that the place of every text is known; the
// bytes between two texts are markup. cmark-gfm builds a tree in which texts have no place, and the columns of the
// nodes around them are wrong behind a backslash, a reference or the prefix of a quote.
#pragma once

#include <md4c.h>

#include <cstddef>
#include <string>
#include <vector>

namespace qkv {

struct MarkdownEvent {
  enum class Kind { enter_block, leave_block, enter_span, leave_span, text, soft_break, hard_break };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  Kind kind = Kind::text;
  MD_BLOCKTYPE block = MD_BLOCK_DOC;
  MD_SPANTYPE span = MD_SPAN_EM;
  MD_TEXTTYPE text = MD_TEXT_NORMAL;
  size_t begin = kNone, end = kNone;  // of a text, bytes of the document; none if md4c has made it
};

// Reads CommonMark with GitHub's tables, strikethrough, task lists and autolinks. Throws Error if the document has more
// than 1 GiB, or makes md4c report much more than it holds: rows of a wide table that lack their cells, or long
// destinations that are referred to again and again.
std::vector<MarkdownEvent> read_markdown(const std::string& document);

}  // namespace qkv
