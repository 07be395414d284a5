// The source of a chat template, which is rendered for a conversation with tools.
#include <nlohmann/json.hpp>

#include "chat/jinja/jinja_template.h"
#include "fuzz/reader.h"
#include "text/unicode.h"

namespace {

using nlohmann::ordered_json;

const ordered_json& variables() {
  static const ordered_json all = ordered_json::parse(R"json({
    "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Zwei <|end|> 🐕?\n"},
      {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5}}}]},
      {"role": "tool", "name": "f", "content": "3"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": ["a", null], "n": -2}}}],
    "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})json");
  return all;
}

}  // namespace

void qkv::fuzz::fuzz_chat_template(std::string_view bytes) {
  const JinjaTemplate chat(bytes);
  std::vector<TemplateVariable> list;
  for (const auto& [name, value] : variables().items()) list.push_back({name, &value, name.ends_with("_token")});
  const MarkedText text = chat.render(list, 0);
  require(find_invalid_utf8(text.bytes) == std::string::npos, "the text is valid UTF-8");
  size_t end = 0;
  for (const ByteRange& range : text.data) {
    require(range.begin < range.end && (end == 0 || range.begin > end), "ranges of data are in order");
    end = range.end;
  }
  require(end <= text.size(), "ranges of data are within the text");
}
