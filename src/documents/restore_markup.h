// The translation of a part in the form in which it replaces the part.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "documents/split_text.h"
#include "qkv/translator.h"

namespace qkv {

// Returns a hypothesis with the tags of the part, each once and nested as in the source, where Hypothesis::alignment
// says, spelled as the document spells its texts. A translation that equals the text gives the bytes of the source.
// replacements: of the document's parts, of which those within this part are used; none: they stay.
std::string restore_markup(const SplitText& document, const TextPart& part, const Translation& translation,
                           size_t hypothesis = 0, std::span<const std::string> replacements = {});

// Returns the text with line feeds in the place of spaces: at most `count` lines of about the same length.
std::string break_lines(std::string text, size_t count);

}  // namespace qkv
