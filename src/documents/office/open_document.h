// The members of OpenDocument archives as texts with parts to translate.
#pragma once

#include <string>
#include <string_view>

#include "documents/document.h"
#include "documents/split_text.h"

namespace qkv {

// Splits content.xml or styles.xml. A part is the text of a paragraph or heading, wherever it is: in tables, lists,
// text frames, shapes, slides and their notes, headers and footers, footnotes, comments, and indexes; also the header
// or footer of slides, and the value of a cell that has another text. A footnote, comment or frame within a sentence is
// one tag of it, and its paragraphs are parts within that tag. A tab ends a text; a line break does after the end of a
// sentence and after another line break.
//
// Everything else stays: fields such as page numbers and references, deleted text of tracked changes, what the styles
// "Source Text" and "Preformatted Text" mark as code (unless there is no other text), formulas with their results, and
// cells whose value is not a text. Spans that only have a revision's number are left out of translations.
//
// Throws Error if the XML is not well formed.
SplitText split_open_document(std::string xml);

// Returns what splits or checks the member of this name: content.xml and styles.xml, also those of charts, and
// the manifest, which says whether the document is encrypted. Null for other members.
SplitFunction open_document_member(std::string_view name);

}  // namespace qkv
