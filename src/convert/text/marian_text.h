// The text of a MarianMT model: vocab.json, source.spm, target.spm, and the special tokens of config.json.
#pragma once

#include "convert/imported_model.h"

namespace qkv {

ModelText read_marian_text(const TextSource& source);

}  // namespace qkv
