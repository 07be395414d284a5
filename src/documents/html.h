// HTML as a text with parts to translate.
#pragma once

#include <string>
#include <string_view>

#include "documents/split_text.h"

namespace qkv {

// Splits HTML into the texts between the tags of blocks. A part has the inline tags within its text. Everything else
// stays: tags, attributes, comments, white space at the ends, texts without letters and digits, elements with
// translate="no" or the class notranslate, links to footnotes and back (by their role or epub:type), and the content of
// <script>, <style>, <pre>, <textarea>, <svg> and of what LibreTranslate leaves untranslated, such as <code> and
// <address>. <br> ends a text after the end of a sentence and after another <br>.
//
// The text may be any bytes. Takes time and memory linear in its size.
SplitText split_html(std::string html);

// As split_html, for the XML syntax of HTML: any element may be self-closing, and CDATA sections are text.
SplitText split_xhtml(std::string xhtml);

// Kinds of elements. All names are in lower case.

// Whether an element has no content and no end tag, such as <br>.
bool is_void_element(std::string_view name);
// Whether an element ends the sentence before it. Unknown elements do not.
bool is_block_element(std::string_view name);
// Whether the content of an element stays as it is: code, scripts, graphics, media, what is written in a form, and the
// elements that LibreTranslate leaves untranslated.
bool is_kept_element(std::string_view name);

}  // namespace qkv
