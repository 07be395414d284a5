// Templates for models that have none: ChatML (Qwen, SmolLM), Llama 2 and 3 (Meta's model cards), Mistral's [INST],
// Zephyr's <|user|>, and plain text.
#include <algorithm>

#include "chat/chat_template.h"

namespace qkv {
namespace {

// The system message stands in the first turn of the user, so it can only be the first message.
#define QKV_SYSTEM_FIRST                                                                   \
  "{% if loop.index0 > 0 and message.role == 'system' %}"                                  \
  "{{ raise_exception('messages: the system message must be the first one') }}{% endif %}" \
  "{% if message.role not in ['system', 'user', 'assistant'] %}"                           \
  "{{ raise_exception('messages: unknown role ' ~ message.role) }}{% endif %}"

#define QKV_KNOWN_ROLES                                                                                           \
  "{% if message.role not in ['system', 'user', 'assistant'] %}"                                                  \
  "{{ raise_exception('messages: unknown role ' ~ message.role ~ ' (choose from system, user, assistant)') }}{% " \
  "endif %}"

constexpr const char* kChatMl = "{{ bos_token }}{% for message in messages %}" QKV_KNOWN_ROLES
                                "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
                                "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

constexpr const char* kLlama2 =
    "{% set ns = namespace(system='') %}{% for message in messages %}" QKV_SYSTEM_FIRST
    "{% if message.role == 'system' %}{% set ns.system = '<<SYS>>\\n' + message.content + '\\n<</SYS>>\\n\\n' %}"
    "{% elif message.role == 'user' %}"
    "{{ bos_token + '[INST] ' + (ns.system + message.content) | trim + ' [/INST]' }}{% set ns.system = '' %}"
    "{% else %}{{ ' ' + message.content | trim + ' ' + eos_token }}{% endif %}{% endfor %}"
    "{% if ns.system %}{{ raise_exception('messages: a message of the user must follow the system message') }}{% endif "
    "%}";

constexpr const char* kLlama3 =
    "{{ bos_token }}{% for message in messages %}" QKV_KNOWN_ROLES
    "{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}"
    "{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";

constexpr const char* kMistral =
    "{% set ns = namespace(system='') %}{{ bos_token }}{% for message in messages %}" QKV_SYSTEM_FIRST
    "{% if message.role == 'system' %}{% set ns.system = message.content | trim + '\\n\\n' %}"
    "{% elif message.role == 'user' %}"
    "{{ '[INST] ' + ns.system + message.content | trim + ' [/INST]' }}{% set ns.system = '' %}"
    "{% else %}{{ ' ' + message.content | trim + eos_token }}{% endif %}{% endfor %}"
    "{% if ns.system %}{{ raise_exception('messages: a message of the user must follow the system message') }}{% endif "
    "%}";

constexpr const char* kZephyr = "{{ bos_token }}{% for message in messages %}" QKV_KNOWN_ROLES
                                "{{ '<|' + message.role + '|>\\n' + message.content + eos_token + '\\n' }}"
                                "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

constexpr const char* kPlain =
    "{{ bos_token }}{% for message in messages %}" QKV_KNOWN_ROLES
    "{{ {'system': '', 'user': 'User: ', 'assistant': 'Assistant: '}[message.role] + message.content + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

#undef QKV_SYSTEM_FIRST
#undef QKV_KNOWN_ROLES

const std::vector<BuiltInTemplate>& built_in_templates() {
  static const std::vector<BuiltInTemplate> all = {
      {"chatml", kChatMl, {"<|im_start|>", "<|im_end|>"}},
      {"llama2", kLlama2, {"<s>", "</s>"}},
      {"llama3", kLlama3, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
      {"mistral", kMistral, {"<s>", "</s>"}},
      {"zephyr", kZephyr, {"</s>"}},
      {"plain", kPlain, {}, "\nUser:"},
  };
  return all;
}

}  // namespace

const BuiltInTemplate* find_built_in_template(std::string_view name) {
  const auto found =
      std::ranges::find(built_in_templates(), name, [](const BuiltInTemplate& t) { return std::string_view(t.name); });
  return found == built_in_templates().end() ? nullptr : &*found;
}

std::string built_in_template_names() {
  std::string names;
  for (const BuiltInTemplate& built_in : built_in_templates())
    names += (names.empty() ? "" : ", ") + std::string(built_in.name);
  return names;
}

}  // namespace qkv
