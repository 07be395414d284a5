#include "serve/chat_template.h"

#include <algorithm>
#include <iterator>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

// The names of the templates, in the order of ChatTemplate::Kind, and the tokens that each needs.
struct TemplateTokens {
  std::string_view name;
  std::vector<const char*> tokens;
};
const TemplateTokens kTemplates[] = {
    {"chatml", {"<|im_start|>", "<|im_end|>"}},
    {"llama2", {"<s>", "</s>"}},
    {"llama3", {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
    {"mistral", {"<s>", "</s>"}},
    {"zephyr", {"</s>"}},
    {"plain", {}},
};

}  // namespace

// Puts a prompt together.
class ChatTemplate::Writer {
 public:
  explicit Writer(const Generator& generator) : generator_(generator) {}

  Writer& token(const char* spelling) {
    flush();
    ids_.push_back(*generator_.token(spelling));
    return *this;
  }
  Writer& text(std::string_view text) {
    text_ += text;
    return *this;
  }
  std::vector<int32_t> take() {
    flush();
    return std::move(ids_);
  }

 private:
  void flush() {
    if (text_.empty()) return;
    const std::vector<int32_t> ids = generator_.encode(text_, true);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    text_.clear();
  }

  const Generator& generator_;
  std::vector<int32_t> ids_;
  std::string text_;
};

ChatTemplate::ChatTemplate(const std::string& name, const Generator& generator) : generator_(generator) {
  const auto place = std::ranges::find(kTemplates, name, &TemplateTokens::name);
  if (place == std::end(kTemplates))
    fail("chat_template: unknown name {} (choose from chatml, llama2, llama3, mistral, zephyr, plain)", excerpt(name));
  kind_ = static_cast<Kind>(place - kTemplates);
  for (const char* token : place->tokens)
    if (!generator.token(token)) fail("chat_template {}: the model has no token {}", name, token);
}

std::string ChatTemplate::stop() const { return kind_ == Kind::plain ? "\nUser:" : ""; }

// The templates are those that the models were trained with: ChatML (Qwen, SmolLM), Llama 2 and 3 (Meta's model cards),
// Mistral's [INST], Zephyr's <|user|>.
std::vector<int32_t> ChatTemplate::prompt(const std::vector<ChatMessage>& messages) const {
  Writer writer(generator_);
  std::string system;  // of Llama 2 and Mistral: in front of the next message of the user
  for (const auto& [role, content] : messages) {
    if (role != "system" && role != "user" && role != "assistant")
      fail("messages: unknown role {} (choose from system, user, assistant)", excerpt(role));
    const bool answers = role == "assistant";
    switch (kind_) {
      case Kind::chatml:
        writer.token("<|im_start|>").text(role + "\n" + content).token("<|im_end|>").text("\n");
        break;
      case Kind::llama3:
        writer.token("<|start_header_id|>").text(role).token("<|end_header_id|>").text("\n\n" + content);
        writer.token("<|eot_id|>");
        break;
      case Kind::zephyr:
        writer.text("<|" + role + "|>\n" + content).token("</s>").text("\n");
        break;
      case Kind::llama2:
      case Kind::mistral:
        if (role == "system") {
          system = kind_ == Kind::llama2 ? "<<SYS>>\n" + content + "\n<</SYS>>\n\n" : content + "\n\n";
        } else if (answers) {
          writer.text(" " + content + (kind_ == Kind::llama2 ? " " : "")).token("</s>");
        } else {
          if (kind_ == Kind::llama2 && &content != &messages.front().content) writer.token("<s>");  // the model has one
          writer.text("[INST] " + std::exchange(system, "") + content + " [/INST]");
        }
        break;
      case Kind::plain:
        writer.text((role == "system" ? "" : answers ? "Assistant: " : "User: ") + content + "\n");
        break;
    }
  }
  if (kind_ == Kind::chatml) writer.token("<|im_start|>").text("assistant\n");
  if (kind_ == Kind::llama3)
    writer.token("<|start_header_id|>").text("assistant").token("<|end_header_id|>").text("\n\n");
  if (kind_ == Kind::zephyr) writer.text("<|assistant|>\n");
  if (kind_ == Kind::plain) writer.text("Assistant:");
  return writer.take();
}

}  // namespace qkv
