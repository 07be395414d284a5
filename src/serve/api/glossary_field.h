// The glossary of a request.
#pragma once

#include <string>

#include "serve/engine/request_object.h"

namespace qkv {

// Returns the member "glossary" as the text of a glossary, `otherwise` if it is absent or null. It is a text, an object
// of source terms, each with its translation or a list of them, or a list of pairs of both. Throws HttpError 400, and
// Error for a term that a glossary cannot have.
std::string glossary_of(RequestObject& object, std::string otherwise);

}  // namespace qkv
