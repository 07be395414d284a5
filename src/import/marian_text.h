// The text of a MarianMT model: vocab.json, source.spm, target.spm, and the special tokens of config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "import/imported_model.h"

namespace qkv {

ModelText read_marian_text(const TextSource& source);

// The ids of bad_words_ids, which no translation may contain. Throws Error for a sequence of several tokens.
std::vector<int64_t> read_bad_words(const Settings& settings);

}  // namespace qkv
