// Scalars of YAML as they are written, in the styles of YAML 1.1 and 1.2.
#pragma once

#include <string_view>

#include "documents/split_text.h"

namespace qkv {

// Whether a plain scalar is a number, a date, null or a boolean, and not a string.
bool is_yaml_value(std::string_view plain);

// Whole scalars with their quotes. One that is not safe without quotes, or not between single ones, has double quotes.
extern const TextSpelling kYamlPlainSpelling;   // in block collections
extern const TextSpelling kYamlFlowSpelling;    // plain between brackets
extern const TextSpelling kYamlSingleSpelling;  // between single quotes

// Text between double quotes.
extern const TextSpelling kYamlDoubleSpelling;

// Text of a line in a block scalar, or of a paragraph in a folded one. Blocks have no escapes: characters that end a
// line become a space, those that YAML does not allow U+FFFD. White space at the beginning is left out, as it would
// belong to the indentation, and an empty text becomes a no-break space, as a block must not begin with its second
// line.
extern const TextSpelling kYamlBlockSpelling;
extern const TextSpelling kYamlFoldedSpelling;  // keeps line feeds, and makes one space of several

}  // namespace qkv
