// Text of office documents in XML (ECMA-376), which stands in runs with properties of their characters: <w:r>, <a:r>.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "documents/split_text.h"
#include "documents/xml_tokens.h"

namespace qkv {

enum class OfficeRole : uint8_t {
  other,      // stays as one tag, unless paragraphs are in it
  paragraph,  // has runs, or text without a run
  run,
  run_properties,
  text,        // in a run
  container,   // of runs: a hyperlink
  properties,  // of a container, at its beginning
  content,     // of a container that has its runs in an element of their own
  unseen,      // of no effect on the text or its look: left out of a translation
  hyphen,      // an element in a run that reads as "-" in the spelling of the markup
  line_break,
  part_end,  // ends the text before it: a tab
  field,     // begins, separates or ends a field
};

struct OfficeMarkup {
  OfficeRole (*role)(const XmlToken& start_tag) = nullptr;
  const TextSpelling* spelling = &kXmlSpelling;
  bool marks_space = false;                                  // white space at the ends of a text needs xml:space
  bool has_lines = false;                                    // line feeds are line breaks
  std::span<const std::string_view> unseen_attributes = {};  // of run properties
};

// Whether the name of a tag is in this namespace: "wordprocessingml", in its transitional or strict form.
bool is_in_office_space(const XmlToken& tag, std::string_view space);

// Returns the value of the attribute with this name in any namespace; "" if there is none.
std::string_view office_attribute(const XmlToken& tag, std::string_view local_name);

// Splits a member of an archive into its paragraphs, at tabs, and at line breaks where a sentence ends. Texts without a
// letter stay.
SplitText split_office_text(std::string xml, const OfficeMarkup& markup);

// Splits text of drawings, diagrams and slides (DrawingML): <a:p>.
SplitText split_drawing_text(std::string xml);

// Whether a member's name is directory + stem + digits + ".xml": "word/header1.xml".
bool is_numbered_member(std::string_view name, std::string_view stem);

}  // namespace qkv
