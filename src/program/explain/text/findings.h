// Short sentences of what the numbers of an explanation say.
#pragma once

#include "program/explain/explain.h"

namespace qkv {

// Adds notes to steps, such as: "Chai" attends mostly to "piyo" (0.944). Rows are tokens.
void add_findings(Explanation& explanation);

}  // namespace qkv
