// The post-processor of a tokenizer.json: the tokens around a text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "text/tokenizer_json/hugging_face_tokenizer.h"

namespace qkv {

// Sets spec.before and spec.after: TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel, a Sequence of
// them, or null. Throws Error, beginning with `where`, for others, and for more than one token on a side.
void read_post_processor(const nlohmann::json* value, const std::string& where, TokenizerSpec& spec);

}  // namespace qkv
