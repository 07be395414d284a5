// Conversations with a language model, by the model's own chat template (qkv/generator.h generates).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/generator.h"

namespace [[gnu::visibility("default")]] qkv {

// Input of a chat template in addition to the messages, as JSON; "" for none.
struct ChatOptions {
  std::string tools = "";      // an array of tools, as in OpenAI's API
  std::string documents = "";  // an array of objects, such as {"title": …, "text": …}
  std::string variables = "";  // an object of further variables of the template, such as {"enable_thinking": false}
  bool add_generation_prompt = true;    // end with the beginning of an answer of the assistant
  bool continue_final_message = false;  // end within the last message, which the model continues instead
};

// How conversations become prompts of a language model. Immutable; methods are thread-safe.
class Chat {
 public:
  // chat_template: the name of one of the model's templates, of a built-in one (chatml, llama2, llama3, mistral,
  // zephyr, plain), or the source of a template in Jinja; "" is the model's own. The generator must outlive the object,
  // but may be moved. Throws Error for a model without a template, an unknown name, a source that is no template, and a
  // model that lacks a token of a built-in template.
  explicit Chat(const Generator& generator, const std::string& chat_template = "");
  ~Chat();
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;

  // Renders messages, a JSON array of objects with role and content, as transformers' apply_chat_template does. Throws
  // Error with the template's own text for a conversation that it refuses, for a message that it would drop because it
  // does not know its role, and for a template that takes more than about 0.1 s or 16 MiB.
  std::string text(const std::string& messages, const ChatOptions& options = {}) const;
  // Returns the tokens of that text, the start token included where the template writes it. Text of messages, tools and
  // documents is never a control token.
  std::vector<int32_t> prompt(const std::string& messages, const ChatOptions& options = {}) const;
  // Generates the assistant's answer.
  Generation answer(const std::string& messages, const GenerateOptions& generate = {},
                    const ChatOptions& options = {}) const;

  // Returns a text that ends an answer, in addition to the end tokens of the model; "" for none.
  std::string stop() const;
  // Returns whether a template of the model names a variable or a role, such as "tools".
  bool mentions(std::string_view word) const;

 private:
  struct State;
  static std::unique_ptr<const State> state_of(const Generator::Model& model, const std::string& chat_template);

  std::unique_ptr<const State> state_;
};

// Returns whether the run directory of a language model has a chat template.
bool has_chat_template(const std::string& run_directory);

}  // namespace qkv
