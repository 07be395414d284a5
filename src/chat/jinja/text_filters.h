#pragma once

#include <string_view>

#include "chat/jinja/functions.h"
#include "chat/jinja/renderer.h"

namespace qkv::jinja {

// Returns a filter that gives a text or a number; null for an unknown name.
const Function* find_text_filter(std::string_view name);

}  // namespace qkv::jinja
