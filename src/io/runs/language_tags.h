// Tags of languages in the text itself, such as >>de<< of MarianMT models, in place of a parameter.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace qkv {

// Throws Error, naming tags, if `language` is given and the vocabulary of the source has pieces such as >>de<<, by
// which a text states the language of its translation.
void refuse_tagged_language(const Tokenizer& source, const std::string& language);

}  // namespace qkv
