// The glossary of a request.
#pragma once

#include <string>

#include "serve/engine/request_object.h"

namespace qkv {

// Returns the member "glossary" as the text of a glossary, or `otherwise` if it is absent or null. The member may be a
// text, an object whose keys are source terms and whose values are translations or lists of translations, or a list of
// pairs of a term and a translation. Throws HttpError 400, and Error for a term that a glossary cannot have.
std::string glossary_of(RequestObject& object, std::string otherwise);

}  // namespace qkv
