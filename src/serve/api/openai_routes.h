// The routes of OpenAI's API that compute.
#pragma once

#include "serve/engine/call.h"

namespace qkv {

void answer_completions(const CallPtr& call);  // POST /v1/completions
void answer_chat(const CallPtr& call);         // POST /v1/chat/completions
void answer_embeddings(const CallPtr& call);   // POST /v1/embeddings

}  // namespace qkv
