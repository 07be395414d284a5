#include "chat/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "chat/jinja/characters.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

constexpr const char* kUsual = "default";
constexpr const char* kForTools = "tool_use";
constexpr const char* kReasoning[] = {"reasoning_content", "thinking", "reasoning"};
// Appended to the last message, to find where it ends in the text. transformers has the same.
constexpr std::string_view kContinueTag = "CONTINUE_FINAL_MESSAGE_TAG ";

// Parses JSON, in which the order of members counts.
ordered_json parse(const std::string& text, const char* name) {
  parse_json(text, name);  // checks it
  return ordered_json::parse(text);
}

ordered_json parse_list(const std::string& text, const char* name) {
  if (text.empty()) return nullptr;
  ordered_json list = parse(text, name);
  if (!list.is_array()) fail("{}: must be an array", name);
  for (const ordered_json& item : list)
    if (!item.is_object()) fail("{}: must be objects", name);
  return list;
}

// Returns a message without the members that are null, and with its reasoning under all names that templates read.
ordered_json normalized(const ordered_json& message) {
  ordered_json result = ordered_json::object();
  const ordered_json* reasoning = nullptr;
  for (const char* name : kReasoning)
    if (const auto found = message.find(name); !reasoning && found != message.end() && !found->is_null())
      reasoning = &*found;
  if (reasoning) result["thinking"] = *reasoning;
  for (const auto& [name, value] : message.items())
    if (!value.is_null()) result[name] = value;
  if (reasoning) result["reasoning_content"] = *reasoning;
  return result;
}

ordered_json parse_messages(const std::string& text) {
  ordered_json messages = parse_list(text.empty() ? "null" : text, "messages");
  if (messages.empty()) fail("messages: must be a list of messages");
  for (ordered_json& message : messages) {
    if (!message.value("role", ordered_json()).is_string()) fail("messages: must be objects with role and content");
    message = normalized(message);
  }
  return messages;
}

// Returns the last text of a message.
std::string* text_to_continue(ordered_json& message) {
  const auto content = message.find("content");
  if (content == message.end()) return nullptr;
  if (content->is_string()) return content->get_ptr<std::string*>();
  for (auto part = content->rbegin(); content->is_array() && part != content->rend(); part++)
    if (part->is_object() && part->contains("text")) return (*part)["text"].get_ptr<std::string*>();
  return nullptr;
}

// Ends the text with the last message.
MarkedText cut_at_tag(MarkedText text) {
  const std::string_view bare = kContinueTag.substr(0, kContinueTag.size() - 1);
  const size_t place = text.bytes.rfind(bare);
  if (place == std::string::npos)
    fail("continue_final_message: the chat template does not write the final message as it is");
  const bool keeps_space = std::string_view(text.bytes).substr(place).starts_with(kContinueTag);
  const std::string_view before = std::string_view(text.bytes).substr(0, place);
  return text.part(0, keeps_space ? place : jinja::strip_right(before).size());
}

// A template that does not know a role, other than the two of every conversation, leaves its message out. Refuses that,
// unless the role's name is in the template.
void check_roles(const ordered_json& messages, const MarkedText& text, const std::string& source) {
  for (const ordered_json& message : messages) {
    const std::string role = message["role"].get<std::string>();
    const auto content = message.find("content");
    if (role == "user" || role == "assistant" || source.find(role) != std::string::npos || content == message.end() ||
        !content->is_string())
      continue;
    const std::string_view words = jinja::strip_left(jinja::strip_right(content->get_ref<const std::string&>()));
    if (!words.empty() && text.bytes.find(words) == std::string::npos)
      fail("messages: the chat template has no role {}", excerpt(role));
  }
}

}  // namespace

ChatTemplate::ChatTemplate(const std::map<std::string, std::string>& sources, std::map<std::string, std::string> tokens)
    : tokens_(std::move(tokens)) {
  for (const auto& [name, source] : sources) templates_.emplace(name, JinjaTemplate(source));
}

const JinjaTemplate& ChatTemplate::choose(bool has_tools) const {
  if (templates_.size() == 1) return templates_.begin()->second;
  for (const char* name : {kForTools, kUsual})
    if (const auto found = templates_.find(name); found != templates_.end() && (has_tools || name == kUsual))
      return found->second;
  std::string names;
  for (const auto& [name, known] : templates_) names += (names.empty() ? "" : ", ") + name;
  fail("chat_template: the model has several templates and no default (choose from {})", names);
}

MarkedText ChatTemplate::render(const std::string& messages, const ChatOptions& options) const {
  ordered_json list = parse_messages(messages);
  const ordered_json tools = parse_list(options.tools, "tools"), documents = parse_list(options.documents, "documents");
  const ordered_json further =
      options.variables.empty() ? ordered_json::object() : parse(options.variables, "variables");
  if (!further.is_object()) fail("variables: must be an object");
  for (const char* name : {"messages", "tools", "documents", "add_generation_prompt"})
    if (further.contains(name)) fail("variables: must not have {}", name);
  const bool adds_prompt = options.add_generation_prompt && !options.continue_final_message;
  if (options.continue_final_message) {
    std::string* last = text_to_continue(list.back());
    if (!last) fail("continue_final_message: the final message must have a text to continue");
    *last += kContinueTag;
  }
  std::map<std::string, ordered_json> values = {
      {"messages", list}, {"tools", tools}, {"documents", documents}, {"add_generation_prompt", adds_prompt}};
  std::vector<TemplateVariable> variables;
  for (const auto& [name, token] : tokens_)
    if (!token.empty()) values[name] = token;
  for (const auto& [name, value] : values)
    if (!further.contains(name)) variables.push_back({name, &value, tokens_.contains(name)});
  for (const auto& [name, value] : further.items()) variables.push_back({name, &value});
  const JinjaTemplate& chosen = choose(!tools.is_null());
  MarkedText text = chosen.render(variables, std::time(nullptr));
  if (options.continue_final_message) return cut_at_tag(std::move(text));
  check_roles(list, text, chosen.source());
  return text;
}

std::string ChatTemplate::behind_answer() const {
  constexpr std::string_view kAnswer = "ANSWER";
  const std::string user = R"({"role": "user", "content": "QUESTION"})",
                    assistant = R"({"role": "assistant", "content": "ANSWER"})";
  try {
    ChatOptions options;
    options.add_generation_prompt = false;
    const std::string text = render("[" + user + ", " + assistant + "]", options).bytes;
    const size_t place = text.rfind(kAnswer);
    return place == std::string::npos ? "" : text.substr(place + kAnswer.size());
  } catch (const Error&) {
    return "";
  }
}

bool ChatTemplate::mentions(std::string_view word) const { return sources().find(word) != std::string::npos; }

std::string ChatTemplate::sources() const {
  std::string all;
  for (const auto& [name, known] : templates_) all += known.source() + '\n';
  return all;
}

}  // namespace qkv
