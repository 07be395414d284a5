// The chat templates of a model, or one of the built-in ones: how a conversation becomes text.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/jinja_template.h"
#include "chat/marked_text.h"
#include "qkv/chat.h"

namespace qkv {

// A template of this library, for models without one.
struct BuiltInTemplate {
  const char* name;
  const char* source;
  std::vector<const char*> tokens;  // that a model must have
  const char* stop = "";            // a text that ends an answer
};
const BuiltInTemplate* find_built_in_template(std::string_view name);  // null for an unknown name
std::string built_in_template_names();                                 // for people: "chatml, llama2, …"

class ChatTemplate {
 public:
  // sources: templates by name; the one of the name "tool_use" is for conversations with tools, "default" for others.
  // tokens: the variables for special tokens, such as bos_token. Throws Error for a source that is no template.
  ChatTemplate(const std::map<std::string, std::string>& sources, std::map<std::string, std::string> tokens);

  // Renders messages as Chat::text does.
  MarkedText render(const std::string& messages, const ChatOptions& options) const;

  // Returns the text behind the last message of the assistant in a short conversation: it begins with the token that
  // ends an answer. "" if the template refuses such a conversation.
  std::string behind_answer() const;

  bool mentions(std::string_view word) const;
  std::string sources() const;  // of all templates, one after the other

 private:
  const JinjaTemplate& choose(bool has_tools) const;

  std::map<std::string, JinjaTemplate> templates_;
  std::map<std::string, std::string> tokens_;
};

}  // namespace qkv
