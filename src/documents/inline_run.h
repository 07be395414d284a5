// Text and inline tags between the tags of two blocks, or a subtitle, as a part to translate.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "documents/split_text.h"

namespace qkv {

struct RunItem {
  // line_break: a single tag that is white space itself, such as <br>.
  enum class Kind { text, open, close, single, line_break };

  Kind kind = Kind::text;
  size_t begin = 0, end = 0;          // bytes of the document
  const std::string* name = nullptr;  // of an element that is opened or closed: the same pointer for the same name
  std::string written = {};           // InlineTag::written
  size_t run = InlineTag::kNone;      // InlineTag::run, of an element that is opened
};

// The bytes of a text from its first visible character to its last one; none if all are white space.
struct VisibleText {
  size_t begin = 0, end = 0;
  bool has_word = false;  // a letter or a digit
  bool has_letter = false;
  bool has_space = false;

  bool is_empty() const { return begin == end; }
};

VisibleText visible_text(const SplitText& document, size_t begin, size_t end);

enum class WhiteSpace {
  collapse,  // runs of white space within a text become one space
  keep,      // white space within a text stays, with line feeds for the line ends
};

// Adds a part of these items to the document, unless they have no letter and no digit. White space around the text,
// tags around the whole text and tags next to it that have no partner stay outside.
void add_part(SplitText& document, std::span<const RunItem> items, WhiteSpace white_space = WhiteSpace::collapse);

// Whether the text ends as a sentence does, but for closing quotation marks and brackets after it.
bool ends_like_sentence(std::string_view text);

}  // namespace qkv
