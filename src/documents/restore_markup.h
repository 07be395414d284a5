// The translation of a part in the form in which it replaces the part.
#pragma once

#include <string>

#include "documents/split_text.h"
#include "qkv/translator.h"

namespace qkv {

// Returns a hypothesis with the tags of the part, each once and nested as in the source, where Hypothesis::alignment
// says; as HTML with "&", "<" and ">" escaped; for subtitles in as many lines as the part has, or fewer. A translation
// that equals the source gives the bytes of the part.
std::string restore_markup(const SplitText& document, const TextPart& part, const Translation& translation,
                           size_t hypothesis = 0);

}  // namespace qkv
