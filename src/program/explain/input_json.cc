// Reads the matrices to explain from JSON, and writes them as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "program/explain/check.h"
#include "program/explain/explain_json.h"

namespace qkv {
namespace {

using Json = nlohmann::json;

// Reads members of one object, and knows which have been read.
class Members {
 public:
  Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail("{}: expected an object", where_);
  }

  const Json* find(const std::string& name) {
    known_.push_back(name);
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  NumberTable table(const std::string& name, bool hides = false) {
    const Json* found = find(name);
    return found ? table_from_json(*found, where_ + ": " + name, hides) : NumberTable();
  }
  NumberTable required_table(const std::string& name) {
    NumberTable result = table(name);
    if (result.empty()) fail("{}: {} is missing", where_, name);
    return result;
  }
  // A row, or numbers without the brackets of the row; all are `value` if it is absent.
  NumberTable row(const std::string& name, int64_t columns, double value) {
    const Json* found = find(name);
    if (!found) return {1, columns, std::vector<double>(static_cast<size_t>(columns), value)};
    const bool flat = found->is_array() && !found->empty() && !found->front().is_array();
    return table_from_json(flat ? Json::array({*found}) : *found, where_ + ": " + name, false);
  }
  double number(const std::string& name, double otherwise) {
    const Json* found = find(name);
    if (found && !found->is_number()) fail("{}: {} must be a number", where_, name);
    return found ? found->get<double>() : otherwise;
  }
  bool flag(const std::string& name) {
    const Json* found = find(name);
    if (found && !found->is_boolean()) fail("{}: {} must be true or false", where_, name);
    return found && found->get<bool>();
  }
  // Labels; numbers from 1 if they are absent.
  std::vector<std::string> labels(const std::string& name, int64_t count) {
    std::vector<std::string> result;
    const Json* found = find(name);
    for (int64_t i = 1; !found && i <= count; i++) result.push_back(std::to_string(i));
    if (found && !found->is_array()) fail("{}: {} must be an array of strings", where_, name);
    for (size_t i = 0; found && i < found->size(); i++) {
      if (!(*found)[i].is_string()) fail("{}: {} must be an array of strings", where_, name);
      result.push_back((*found)[i].get<std::string>());
    }
    return result;
  }
  void refuse_others() const {
    for (const auto& [name, value] : object_.items())
      if (std::ranges::find(known_, name) == known_.end()) fail("{}: unknown member {}", where_, excerpt(name));
  }

 private:
  const Json& object_;
  const std::string where_;
  std::vector<std::string> known_;
};

ExplainedHead read_head(Members& members) {
  return {members.required_table("W_Q"), members.required_table("W_K"), members.required_table("W_V")};
}

std::vector<ExplainedHead> read_heads(Members& members, const std::string& where) {
  const Json* heads = members.find("heads");
  if (!heads) return {read_head(members)};
  if (!heads->is_array()) fail("{}: heads must be an array of objects", where);
  std::vector<ExplainedHead> result;
  for (const Json& head : *heads) {
    Members of_head(head, fmt::format("{}: heads: {}", where, result.size() + 1));
    result.push_back(read_head(of_head));
    of_head.refuse_others();
  }
  return result;
}

ExplainedLayer read_layer(const Json& json, int64_t d, const std::string& where) {
  Members members(json, where);
  ExplainedLayer layer;
  layer.W_1 = members.required_table("W_1");
  layer.W_2 = members.required_table("W_2");
  layer.b_1 = members.row("b_1", layer.W_1.columns, 0);
  layer.b_2 = members.row("b_2", d, 0);
  layer.gamma_1 = members.row("gamma_1", d, 1), layer.beta_1 = members.row("beta_1", d, 0);
  layer.gamma_2 = members.row("gamma_2", d, 1), layer.beta_2 = members.row("beta_2", d, 0);
  layer.epsilon = members.number("epsilon", layer.epsilon);
  if (const Json* name = members.find("activation")) {
    constexpr auto names = names_of(Activation{});
    const auto found = std::ranges::find(names, name->is_string() ? name->get<std::string>() : "");
    if (found == names.end()) fail("{}: activation must be one of {}", where, fmt::join(names, ", "));
    layer.activation = static_cast<Activation>(found - names.begin());
  }
  members.refuse_others();
  return layer;
}

Json layer_json(const ExplainedLayer& layer) {
  return {{"W_1", table_to_json(layer.W_1)},
          {"b_1", table_to_json(layer.b_1)},
          {"W_2", table_to_json(layer.W_2)},
          {"b_2", table_to_json(layer.b_2)},
          {"gamma_1", table_to_json(layer.gamma_1)},
          {"beta_1", table_to_json(layer.beta_1)},
          {"gamma_2", table_to_json(layer.gamma_2)},
          {"beta_2", table_to_json(layer.beta_2)},
          {"activation", names_of(Activation{})[static_cast<size_t>(layer.activation)]},
          {"epsilon", layer.epsilon}};
}

}  // namespace

ExplainInput explain_input_from_json(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  Members members(json, where);
  ExplainInput in;
  in.X = members.required_table("X");
  in.memory = members.table("memory");
  in.tokens = members.labels("tokens", in.X.rows);
  in.memory_tokens = members.labels("memory_tokens", in.memory.rows);
  in.heads = read_heads(members, where);
  in.W_O = members.table("W_O");
  in.causal = members.flag("causal");
  in.mask = members.table("mask", true);
  in.scale = members.number("scale", 0);
  in.dO = members.table("dO");
  if (const Json* layer = members.find("layer")) in.layer = read_layer(*layer, in.X.columns, where + ": layer");
  members.refuse_others();
  check_explain_input(in, where);
  return in;
}

std::string explain_input_to_json(const ExplainInput& in) {
  check_explain_input(in, "explain");
  Json heads = Json::array();
  for (const ExplainedHead& head : in.heads)
    heads.push_back(
        {{"W_Q", table_to_json(head.W_Q)}, {"W_K", table_to_json(head.W_K)}, {"W_V", table_to_json(head.W_V)}});
  Json json = {{"tokens", in.tokens}, {"X", table_to_json(in.X)}, {"heads", std::move(heads)}, {"causal", in.causal}};
  if (!in.memory.empty()) json["memory"] = table_to_json(in.memory), json["memory_tokens"] = in.memory_tokens;
  if (!in.W_O.empty()) json["W_O"] = table_to_json(in.W_O);
  if (!in.mask.empty()) json["mask"] = table_to_json(in.mask);
  if (in.scale != 0) json["scale"] = in.scale;
  if (!in.dO.empty()) json["dO"] = table_to_json(in.dO);
  if (!in.layer.empty()) json["layer"] = layer_json(in.layer);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qkv
