// The routes of qkv itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/engine/call.h"

namespace qkv {

void answer_translate(const CallPtr& call);  // POST /v1/translate
void answer_recommend(const CallPtr& call);  // POST /v1/recommend
void answer_items(const CallPtr& call);      // GET /v1/items

// Returns a JSON list of values in JSON.
std::string list_of(const std::vector<std::string>& values);

}  // namespace qkv
