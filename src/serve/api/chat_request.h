// The part of a request of /v1/chat/completions that the chat template of a model reads.
#pragma once

#include <string>
#include <string_view>

#include "qkv/chat.h"
#include "serve/engine/request_object.h"

namespace qkv {

struct ChatRequest {
  std::string messages;  // JSON
  ChatOptions options;
};

// Reads messages, tools, tool_choice, documents, chat_template_kwargs, enable_thinking, reasoning_effort,
// add_generation_prompt and continue_final_message. body: that of the object, whose members are in the order of the
// client. Throws HttpError 400 for other values, and for those that the template does not read.
ChatRequest read_chat_request(RequestObject& object, std::string_view body, const Chat& chat);

}  // namespace qkv
