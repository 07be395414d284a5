// Fields of Word, such as page numbers and cross-references: <w:fldChar> marks their beginning, the beginning of their
// result and their end.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_map>

#include "documents/office/office_runs.h"
#include "documents/xml_tokens.h"

namespace qkv {

// Markup that stands for one item, from a token on.
struct OfficeField {
  enum class Kind { whole, link_open, link_close };
  Kind kind = Kind::whole;
  size_t last = 0;      // token that ends it
  size_t last_run = 0;  // start tag of the run that this token is in
};

// Returns the fields by the token that they begin with: each that stands in one paragraph, and both ends of each
// hyperlink, whose result is text. Other marks of fields are not in it.
std::unordered_map<size_t, OfficeField> find_office_fields(std::string_view xml, std::span<const XmlToken> tokens,
                                                           std::span<const OfficeRole> roles);

}  // namespace qkv
