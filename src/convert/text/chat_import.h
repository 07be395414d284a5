// The chat templates of a model in the Hugging Face layout.
#pragma once

#include <string>
#include <vector>

#include "convert/model_files.h"
#include "convert/settings.h"
#include "io/runs/chat_files.h"
#include "text/text_codec.h"

namespace qkv {

// Reads chat_template.jinja and additional_chat_templates/NAME.jinja, or else chat_template of tokenizer_config.json (a
// text, or a list of named ones), or of chat_template.json; and the special tokens of tokenizer_config.json. Throws
// Error, naming file and field.
ChatFiles read_chat(const ModelFiles& files);

// Returns the token of the vocabulary that ends an answer in the default template; "" if no token does, or the template
// cannot be read.
std::string end_of_answer(const ChatFiles& chat, const TextCodec& codec);

// Returns a line for each template that cannot be read.
std::vector<std::string> chat_problems(const ChatFiles& chat);

}  // namespace qkv
