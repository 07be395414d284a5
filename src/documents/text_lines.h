// Plain text as lines that are translated apart.
#pragma once

#include <string>

#include "documents/split_text.h"

namespace qkv {

// Splits a text at LF, CRLF and CR. Each line that is not only white space is a part; line ends stay, as does a
// byte-order mark. The text is valid UTF-8.
SplitText split_lines(std::string text);

}  // namespace qkv
