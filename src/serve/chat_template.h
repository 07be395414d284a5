// How a conversation becomes the prompt of a language model. The tokens of a template are put in by id, and what people
// write is encoded without special tokens, so that nobody can write the turn of somebody else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/generator.h"

namespace qkv {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

// Names: chatml, llama2, llama3, mistral, zephyr, plain.
class ChatTemplate {
 public:
  // Throws Error for an unknown name, and for a model that lacks a token of the template. The generator must outlive
  // the object.
  ChatTemplate(const std::string& name, const Generator& generator);

  // Returns the prompt that the assistant's answer follows. Throws Error for a role that the template does not have.
  std::vector<int32_t> prompt(const std::vector<ChatMessage>& messages) const;
  // Returns a text that ends the answer, in addition to the end tokens of the model; "" for none.
  std::string stop() const;

 private:
  enum class Kind { chatml, llama2, llama3, mistral, zephyr, plain };
  class Writer;

  Kind kind_;
  const Generator& generator_;
};

}  // namespace qkv
