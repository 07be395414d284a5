// Text and markup of a paragraph of an office document, whose text stands in runs, as a part to translate.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "documents/inline_run.h"
#include "documents/split_text.h"

namespace qkv {

// A text, a tag, or other markup. Its bytes include the tags of its run if it is the first or the last item in it;
// otherwise they cut the run.
struct OfficeItem {
  static constexpr size_t kNone = InlineTag::kNone;

  RunItem::Kind kind = RunItem::Kind::text;
  size_t begin = 0, end = 0;                  // bytes of the document
  size_t begin_cut = kNone, end_cut = kNone;  // place in SplitText::runs of the run that is cut there
  ByteRange text = {};                        // of a text, without the tags of its run
  size_t run = kNone;                         // of a text: place in SplitText::runs; kNone: it stands without markup
  const std::string* name = nullptr;          // of an element: the same pointer for the same name
};

// Adds a part of these items, unless they have no letter. Texts in the same run make one text. Each other run than the
// one with the most text is an element.
void add_office_part(SplitText& document, std::span<const OfficeItem> items);

}  // namespace qkv
