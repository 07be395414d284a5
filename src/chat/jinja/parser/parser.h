// Parses the source of a template.
#pragma once

#include <string_view>

#include "chat/jinja/syntax.h"

namespace qkv::jinja {

// Throws Error, with the line, for what is not a template or uses what chat templates do not have: include, import,
// extends, block, recursive loops.
Block parse_template(std::string_view source);

}  // namespace qkv::jinja
