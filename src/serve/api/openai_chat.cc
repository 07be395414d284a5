// POST /v1/chat/completions.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "serve/api/chat_request.h"
#include "serve/api/openai_generation.h"
#include "serve/api/openai_routes.h"
#include "serve/engine/request_object.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

ordered_json chat_token(const std::string& token, double log_probability) {
  ordered_json bytes = ordered_json::array();
  for (const char c : token) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token_text(token)}, {"logprob", log_probability}, {"bytes", std::move(bytes)}};
}

ordered_json chat_logprobs(std::span<const GeneratedToken> tokens, int64_t) {
  ordered_json content = ordered_json::array();
  for (const GeneratedToken& token : tokens) {
    ordered_json entry = chat_token(token.text, token.log_probability);
    entry["top_logprobs"] = ordered_json::array();
    for (const TokenAlternative& other : token.alternatives)
      entry["top_logprobs"].push_back(chat_token(other.end ? "<end>" : other.text, other.log_probability));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

ordered_json chat_choice(size_t i, std::string text, ordered_json logprobs, ordered_json finish) {
  return {{"index", i},
          {"message", {{"role", "assistant"}, {"content", std::move(text)}, {"refusal", nullptr}}},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(finish)}};
}

// The first chunk of a choice has its role.
std::function<ordered_json(size_t, std::string, ordered_json, ordered_json)> chat_chunks() {
  return [begun = std::make_shared<std::vector<bool>>()](size_t i, std::string text, ordered_json logprobs,
                                                         ordered_json finish) -> ordered_json {
    begun->resize(std::max(begun->size(), i + 1));
    ordered_json delta = ordered_json::object();
    if (!(*begun)[i]) delta["role"] = "assistant";
    (*begun)[i] = true;
    if (!text.empty() || delta.contains("role")) delta["content"] = std::move(text);
    return {{"index", i},
            {"delta", std::move(delta)},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", std::move(finish)}};
  };
}

}  // namespace

void answer_chat(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  OpenAiRequest request = read_openai_request(object, *call, "chatcmpl-");
  if (!request.model->chat)
    refuse_field("messages", "need a chat template: serve with --chat-template {}=TEMPLATE{}", request.model->name,
                 request.model->chat_problem);
  const ChatRequest chat = read_chat_request(object, call->body(), *request.model->chat);
  std::vector<int32_t> prompt = request.model->chat->prompt(chat.messages, chat.options);
  if (const std::string stop = request.model->chat->stop(); !stop.empty()) request.options.stop.push_back(stop);
  request.options.max_tokens = room_for(*request.model, prompt, call->service().options());
  read_max_tokens(object, "max_tokens", request);
  read_max_tokens(object, "max_completion_tokens", request);
  request.logprobs = object.flag("logprobs");
  request.options.alternatives = object.integer("top_logprobs", 0, between(0, 20));
  if (request.options.alternatives > 0 && !request.logprobs) refuse_field("logprobs", "must be true for top_logprobs");
  check_openai_request(*call, request, 1);
  add_prompt(*call, request, std::move(prompt), "", 1);
  answer_openai(call, std::move(request),
                {"chat.completion", "chat.completion.chunk", chat_choice, chat_chunks(), chat_logprobs, true});
}

}  // namespace qkv
