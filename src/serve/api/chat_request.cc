#include "serve/api/chat_request.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/json.h"
#include "serve/http/http_reply.h"

namespace qkv {
namespace {

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

}  // namespace

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

}  // namespace qkv
