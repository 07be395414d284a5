// Members of requests to OpenAI's routes that would change the answer, but are not served. Other programs know them:
// OpenAI, vLLM, llama.cpp, SGLang.
#pragma once

#include "serve/engine/request_object.h"

namespace qkv {

// Throws HttpError 400 that names the member, unless its value has no effect, such as 0, false or null.
void refuse_unserved_members(RequestObject& object);

}  // namespace qkv
