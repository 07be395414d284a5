#include "chat/jinja/jinja_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chat/jinja/parser/parser.h"
#include "chat/jinja/renderer.h"
#include "core/fail.h"

namespace qkv {
namespace {

using jinja::Value;
using nlohmann::ordered_json;

// Templates write <|user|> as "<|" + role + "|>"; a role of another name stays data.
constexpr std::string_view kRoles[] = {
    "system",   "developer", "user",          "assistant",           "tool",
    "function", "ipython",   "context",       "documents",           "model",
    "bot",      "human",     "tool_response", "assistant_tool_call", "available_tools"};

bool is_role(const std::string& key, const std::string& text) {
  return key == "role" && std::ranges::find(kRoles, text) != std::end(kRoles);
}

Value value_of(const ordered_json& json, bool is_trusted, const std::string& key = "") {
  switch (json.type()) {
    case ordered_json::value_t::null:
      return jinja::None{};
    case ordered_json::value_t::boolean:
      return json.get<bool>();
    case ordered_json::value_t::number_integer:
      return json.get<int64_t>();
    case ordered_json::value_t::number_unsigned:
      if (json.get<uint64_t>() > INT64_MAX) fail("chat template: the integer {} is beyond 64 bits", json.dump());
      return json.get<int64_t>();
    case ordered_json::value_t::number_float:
      return json.get<double>();
    case ordered_json::value_t::string: {
      std::string text = json.get<std::string>();
      const bool is_template = is_trusted || is_role(key, text);
      return std::make_shared<const jinja::Text>(
          is_template ? MarkedText::of_template(std::move(text)) : MarkedText::of_data(std::move(text)), nullptr);
    }
    case ordered_json::value_t::array: {
      std::vector<Value> items;
      for (const ordered_json& item : json) items.push_back(value_of(item, is_trusted));
      return std::make_shared<const jinja::Sequence>(jinja::SequenceKind::list, std::move(items), nullptr);
    }
    default:
      break;
  }
  jinja::Dict::Entries entries;
  for (const auto& [name, value] : json.items())
    entries.emplace_back(value_of(ordered_json(name), is_trusted), value_of(value, is_trusted, name));
  return std::make_shared<const jinja::Dict>(std::move(entries), nullptr);
}

}  // namespace

struct JinjaTemplate::Tree {
  std::string source;
  jinja::Block block;
};

JinjaTemplate::JinjaTemplate(std::string_view source)
    : tree_(std::make_shared<const Tree>(Tree{std::string(source), jinja::parse_template(source)})) {}

const std::string& JinjaTemplate::source() const { return tree_->source; }

MarkedText JinjaTemplate::render(const std::vector<TemplateVariable>& variables, std::time_t now) const {
  std::vector<Value> values;
  size_t bytes = 0;
  for (const TemplateVariable& variable : variables) {
    values.push_back(value_of(*variable.value, variable.is_trusted));
    bytes += jinja::extent_of(values.back()).bytes;
  }
  jinja::Renderer renderer(bytes, now);
  for (size_t i = 0; i < values.size(); i++) renderer.set_variable(variables[i].name, std::move(values[i]));
  tree_->block.execute(renderer);
  return renderer.take_output();
}

}  // namespace qkv
