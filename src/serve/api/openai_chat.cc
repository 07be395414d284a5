// POST /v1/chat/completions.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "qkv/chat.h"
#include "serve/api/openai_generation.h"
#include "serve/engine/request_object.h"
#include "serve/http/http_reply.h"

namespace qkv {
namespace {

// ---- The part of a request that the chat template of a model reads.

struct ChatRequest {
  std::string messages;  // JSON
  ChatOptions options;
};

using nlohmann::ordered_json;

// Joins the text parts of a content.
std::string text_of_parts(const ordered_json& content) {
  if (!content.is_array()) refuse_field("messages", "must have a string or text parts as content");
  std::string text;
  for (const ordered_json& part : content) {
    if (!part.is_object() || part.value("type", ordered_json()) != "text" ||
        !part.value("text", ordered_json()).is_string())
      refuse_field("messages", "must have text parts only");
    text += part["text"].get<std::string>();
  }
  return text;
}

// OpenAI's API has the arguments of a call as JSON in a string; templates read an object.
void read_arguments(ordered_json& message) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (ordered_json& call : *calls) {
    if (!call.is_object()) refuse_field("messages", "must have objects as tool_calls");
    ordered_json& function = call.contains("function") ? call["function"] : call;
    if (!function.is_object() || !function.value("arguments", ordered_json()).is_string()) continue;
    const std::string text = function["arguments"].get<std::string>();
    try {
      parse_json(text, "arguments");  // checks it
    } catch (const Error&) {
      continue;  // stays a text
    }
    if (ordered_json read = ordered_json::parse(text); read.is_object()) function["arguments"] = std::move(read);
  }
}

// Whether the template writes the text parts of a content itself, as those of models with images do.
bool reads_parts(const Chat& chat) {
  try {
    const std::string text = chat.text(R"([{"role": "user", "content": [{"type": "text", "text": "PART"}]}])");
    return text.find("PART") != std::string::npos && text.find("'text'") == std::string::npos &&
           text.find("\"text\"") == std::string::npos;
  } catch (const Error&) {
    return false;  // the template expects a text
  }
}

std::string read_messages(const ordered_json& body, const Chat& chat) {
  ordered_json messages = body.value("messages", ordered_json());
  if (!messages.is_array() || messages.empty()) refuse_field("messages", "must be a list of messages");
  std::optional<bool> keeps_parts;
  for (ordered_json& message : messages) {
    if (!message.is_object() || !message.value("role", ordered_json()).is_string())
      refuse_field("messages", "must be objects with role and content");
    if (message["role"] == "developer" && !chat.mentions("developer")) message["role"] = "system";
    ordered_json& content = message["content"];
    if (content.is_null()) content = "";
    if (!content.is_string()) {
      std::string text = text_of_parts(content);
      if (!keeps_parts) keeps_parts = reads_parts(chat);
      if (!*keeps_parts) content = std::move(text);
    }
    read_arguments(message);
  }
  return messages.dump();
}

// Returns a list of the body as JSON; "" if it is absent or empty.
std::string read_list(RequestObject& object, const ordered_json& body, const char* name, const Chat& chat) {
  const nlohmann::json& value = object.get(name);
  if (value.is_null() || value.empty()) return "";
  if (!value.is_array()) refuse_field(name, "must be a list of objects");
  if (!chat.mentions(name)) refuse_field(name, "are not read by the chat template of the model");
  return body[name].dump();
}

// Returns whether the client forbids tools. Nothing makes a model call one.
bool forbids_tools(RequestObject& object) {
  const nlohmann::json& choice = object.get("tool_choice");
  if (!choice.is_null() && choice != "auto" && choice != "none") refuse_field("tool_choice", "must be auto or none");
  return choice == "none";
}

// Collects further variables. One that the template does not read would be without effect: it is refused unless it is
// false.
std::string read_variables(RequestObject& object, const ordered_json& body, const Chat& chat) {
  ordered_json variables = ordered_json::object();
  const auto add = [&](const std::string& field, const std::string& name, const ordered_json& value) {
    if (chat.mentions(name))
      variables[name] = value;
    else if (!value.is_null() && value != false)
      refuse_field(field, "has {}, which the chat template of the model does not read", excerpt(name));
  };
  if (const nlohmann::json& given = object.get("chat_template_kwargs"); !given.is_null()) {
    if (!given.is_object()) refuse_field("chat_template_kwargs", "must be an object");
    for (const auto& [name, value] : body["chat_template_kwargs"].items()) add("chat_template_kwargs", name, value);
  }
  if (object.has("enable_thinking")) add("enable_thinking", "enable_thinking", object.flag("enable_thinking"));
  if (object.has("reasoning_effort")) {
    const std::string effort = object.text("reasoning_effort");
    if (chat.mentions("reasoning_effort")) variables["reasoning_effort"] = effort;
  }
  return variables.empty() ? "" : variables.dump();
}

// Reads messages, tools, tool_choice, documents, chat_template_kwargs, enable_thinking, reasoning_effort,
// add_generation_prompt and continue_final_message. body: that of the object, whose members are in the order of the
// client. Throws HttpError 400 for other values, and for those that the template does not read.
ChatRequest read_chat_request(RequestObject& object, std::string_view body, const Chat& chat) {
  const ordered_json ordered = ordered_json::parse(body);
  if (object.has("chat_template")) refuse_field("chat_template", "is chosen by the server");
  if (object.has("functions") && !object.get("functions").empty())
    refuse_field("functions", "are not supported (use tools)");
  ChatRequest request{read_messages(ordered, chat), {}};
  ChatOptions& options = request.options;
  options.tools = read_list(object, ordered, "tools", chat);
  if (forbids_tools(object)) options.tools.clear();
  options.documents = read_list(object, ordered, "documents", chat);
  options.variables = read_variables(object, ordered, chat);
  options.continue_final_message = object.flag("continue_final_message");
  options.add_generation_prompt = object.flag("add_generation_prompt", !options.continue_final_message);
  if (options.continue_final_message && options.add_generation_prompt)
    refuse_field("continue_final_message", "must be false where add_generation_prompt is true");
  return request;
}

// ---- The answer

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
