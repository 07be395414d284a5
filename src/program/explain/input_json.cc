// Reads the matrices to explain from JSON, and writes them as JSON.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "program/explain/check.h"
#include "program/explain/explain_json.h"

namespace qkv {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 4> kActivations = names_of(Activation{});
constexpr std::array<std::string_view, 2> kPositionsOfNorms = {"post", "pre"};
constexpr std::array<std::string_view, 2> kNorms = {"layer", "rms"};
constexpr std::array<std::string_view, 2> kForms = {"rows", "columns"};

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
  // A row, or numbers without the brackets of the row; empty if it is absent.
  NumberTable optional_row(const std::string& name) { return find(name) ? row(name, 0, 0) : NumberTable(); }
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
  // The place of a name in a list, of the first if it is absent.
  size_t choice(const std::string& name, std::span<const std::string_view> names) {
    const Json* value = find(name);
    const std::optional<size_t> found = value ? find_choice(*value, names) : std::optional<size_t>(0);
    if (!found) fail("{}: {} must be one of {}", where_, name, fmt::join(names, ", "));
    return *found;
  }
  // Labels; numbers from `first` on if they are absent.
  std::vector<std::string> labels(const std::string& name, int64_t count, int64_t first = 1) {
    std::vector<std::string> result;
    const Json* found = find(name);
    for (int64_t i = 0; !found && i < count; i++) result.push_back(std::to_string(first + i));
    if (found && !found->is_array()) fail("{}: {} must be an array of strings", where_, name);
    for (size_t i = 0; found && i < found->size(); i++) {
      if (!(*found)[i].is_string()) fail("{}: {} must be an array of strings", where_, name);
      result.push_back((*found)[i].get<std::string>());
    }
    return result;
  }
  void refuse_others() const {
    for (const auto& [name, value] : object_.items())
      if (std::ranges::find(known_, name) == known_.end())
        fail("{}: unknown member {}, expected {}", where_, excerpt(name), fmt::join(known(), ", "));
  }

 private:
  // Each name once, in the order of reading.
  std::vector<std::string> known() const {
    std::vector<std::string> names;
    for (const std::string& name : known_)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    return names;
  }

  const Json& object_;
  const std::string where_;
  std::vector<std::string> known_;
};

ExplainedHead read_head(Members& members) {
  ExplainedHead head;
  if (members.find("Q") || members.find("K") || members.find("V")) {
    head.Q = members.required_table("Q"), head.K = members.required_table("K"), head.V = members.required_table("V");
    return head;
  }
  head.W_Q = members.required_table("W_Q"), head.W_K = members.required_table("W_K");
  head.W_V = members.required_table("W_V");
  head.b_Q = members.optional_row("b_Q"), head.b_K = members.optional_row("b_K");
  head.b_V = members.optional_row("b_V");
  return head;
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

// The members of self-attention and of `cross` alike.
ExplainedAttention read_attention(Members& members, const std::string& where) {
  ExplainedAttention attention;
  attention.heads = read_heads(members, where);
  if (attention.empty()) fail("{}: 0 heads, expected 1 to {}", where, kMostHeads);
  attention.W_O = members.table("W_O");
  attention.b_O = members.optional_row("b_O");
  attention.mask = members.table("mask", true);
  attention.scale = members.number("scale", 0);
  return attention;
}

ExplainedNorm read_norm(Members& members, const std::string& suffix, NormKind kind, int64_t d) {
  ExplainedNorm norm;
  norm.gamma = members.row("gamma" + suffix, d, 1);
  norm.beta = kind == NormKind::rms ? members.optional_row("beta" + suffix) : members.row("beta" + suffix, d, 0);
  return norm;
}

ExplainedLayer read_layer(const Json& json, int64_t d, size_t sublayers, const std::string& where) {
  Members members(json, where);
  ExplainedLayer layer;
  layer.W_1 = members.required_table("W_1");
  layer.b_1 = members.row("b_1", layer.W_1.columns, 0);
  layer.W_gate = members.table("W_gate");
  layer.b_gate = layer.W_gate.empty() ? members.optional_row("b_gate") : members.row("b_gate", layer.W_1.columns, 0);
  layer.W_2 = members.required_table("W_2");
  layer.b_2 = members.row("b_2", d, 0);
  layer.position = members.choice("norm_position", kPositionsOfNorms) == 0 ? NormPosition::post : NormPosition::pre;
  layer.norm = members.choice("norm", kNorms) == 0 ? NormKind::layer : NormKind::rms;
  for (size_t k = 1; k <= sublayers; k++)
    layer.norms.push_back(read_norm(members, fmt::format("_{}", k), layer.norm, d));
  layer.epsilon = members.number("epsilon", layer.epsilon);
  layer.activation = static_cast<Activation>(members.choice("activation", kActivations));
  members.refuse_others();
  return layer;
}

int32_t read_label(const Json& label, const std::vector<std::string>& vocabulary, const std::string& where) {
  const auto found = std::ranges::find(vocabulary, label.is_string() ? label.get<std::string>() : "");
  if (label.is_string() && found != vocabulary.end()) return static_cast<int32_t>(found - vocabulary.begin());
  if (label.is_number_integer() && label >= 0 && label < std::ssize(vocabulary)) return label.get<int32_t>();
  const std::string text = label.is_string()   ? excerpt(label.get<std::string>())
                           : label.is_number() ? label.dump()
                                               : std::string(label.type_name());
  fail("{}: label {}, expected 0 to {}, or a token of the vocabulary", where, text, vocabulary.size() - 1);
}

ExplainedOutput read_output(const Json& json, const ExplainInput& in, const std::string& where) {
  Members members(json, where);
  ExplainedOutput output;
  output.W = members.required_table("W");
  output.b = members.optional_row("b");
  output.vocabulary = members.labels("vocabulary", output.W.columns, 0);
  check_labels(output.vocabulary, "vocabulary", output.W.columns, where);  // before labels are read by it
  if (members.find("gamma"))
    output.norm = read_norm(members, "", in.layer.norm, output.W.rows);
  else
    output.norm.beta = members.optional_row("beta");
  output.smoothing = members.number("label_smoothing", 0);
  if (const Json* labels = members.find("labels")) {
    if (!labels->is_array()) fail("{}: labels must be an array of tokens or their places in the vocabulary", where);
    for (const Json& label : *labels) output.labels.push_back(read_label(label, output.vocabulary, where));
    if (labels->empty()) fail("{}: 0 labels, expected one for each token", where);
  }
  members.refuse_others();
  return output;
}

// Labels of what is attended to: of the memory; of K, where Q, K and V are given.
std::vector<std::string> read_key_labels(Members& members, const ExplainInput& in) {
  if (in.attention.has_weights()) return members.labels("memory_tokens", in.memory.rows);
  const int64_t keys = in.attention.heads.front().K.rows;
  const bool same = !members.find("memory_tokens") && keys == std::ssize(in.tokens);
  return same ? in.tokens : members.labels("memory_tokens", keys);
}

void put(Json& json, const char* name, const NumberTable& table) {
  if (!table.empty()) json[name] = table_to_json(table);
}

void put_attention(Json& json, const ExplainedAttention& attention) {
  Json heads = Json::array();
  for (const ExplainedHead& head : attention.heads) {
    Json members = Json::object();
    for (const auto& [name, table] : {std::pair{"W_Q", &head.W_Q},
                                      {"W_K", &head.W_K},
                                      {"W_V", &head.W_V},
                                      {"b_Q", &head.b_Q},
                                      {"b_K", &head.b_K},
                                      {"b_V", &head.b_V},
                                      {"Q", &head.Q},
                                      {"K", &head.K},
                                      {"V", &head.V}})
      put(members, name, *table);
    heads.push_back(std::move(members));
  }
  json["heads"] = std::move(heads);
  put(json, "W_O", attention.W_O);
  put(json, "b_O", attention.b_O);
  put(json, "mask", attention.mask);
  if (attention.scale != 0) json["scale"] = attention.scale;
}

Json layer_json(const ExplainedLayer& layer) {
  Json json = {{"norm_position", name_of(layer.position)},
               {"norm", name_of(layer.norm)},
               {"activation", name_of(layer.activation)},
               {"epsilon", layer.epsilon}};
  put(json, "W_1", layer.W_1), put(json, "b_1", layer.b_1);
  put(json, "W_gate", layer.W_gate), put(json, "b_gate", layer.b_gate);
  put(json, "W_2", layer.W_2), put(json, "b_2", layer.b_2);
  for (size_t k = 0; k < layer.norms.size(); k++) {
    put(json, fmt::format("gamma_{}", k + 1).c_str(), layer.norms[k].gamma);
    put(json, fmt::format("beta_{}", k + 1).c_str(), layer.norms[k].beta);
  }
  return json;
}

Json output_json(const ExplainedOutput& output) {
  Json json = {{"vocabulary", output.vocabulary}, {"label_smoothing", output.smoothing}};
  put(json, "W", output.W), put(json, "b", output.b);
  put(json, "gamma", output.norm.gamma), put(json, "beta", output.norm.beta);
  if (!output.labels.empty()) json["labels"] = output.labels;
  return json;
}

}  // namespace

ExplainInput explain_input_from_json(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  Members members(json, where);
  ExplainInput in;
  in.X = members.table("X");
  in.memory = members.table("memory");
  const bool given = members.find("Q") || members.find("heads");  // may do without X
  if (in.X.empty() && !given) fail("{}: X is missing, expected X and weights, or Q, K and V", where);
  in.attention = read_attention(members, where);
  if (in.X.empty() && in.attention.has_weights())
    fail("{}: X is missing, expected X and weights, or Q, K and V", where);
  in.attention.causal = members.flag("causal");
  in.tokens = members.labels("tokens", in.attention.has_weights() ? in.X.rows : in.attention.heads.front().Q.rows);
  in.memory_tokens = read_key_labels(members, in);
  if (const Json* cross = members.find("cross")) {
    Members of_cross(*cross, where + ": cross");
    in.cross = read_attention(of_cross, where + ": cross");
    of_cross.refuse_others();
  }
  in.dO = members.table("dO");
  if (const Json* layer = members.find("layer"))
    in.layer = read_layer(*layer, in.X.columns, in.cross.empty() ? 2 : 3, where + ": layer");
  if (const Json* output = members.find("output")) in.output = read_output(*output, in, where + ": output");
  in.columns = members.choice("form", kForms) == 1;
  members.refuse_others();
  check_explain_input(in, where);
  return in;
}

std::string explain_input_to_json(const ExplainInput& in) {
  check_explain_input(in, "explain");
  Json json = {{"tokens", in.tokens}, {"causal", in.attention.causal}, {"form", in.columns ? "columns" : "rows"}};
  put_attention(json, in.attention);
  put(json, "X", in.X), put(json, "memory", in.memory), put(json, "dO", in.dO);
  if (!in.memory_tokens.empty()) json["memory_tokens"] = in.memory_tokens;
  if (!in.cross.empty()) put_attention(json["cross"], in.cross);
  if (!in.layer.empty()) json["layer"] = layer_json(in.layer);
  if (!in.output.empty()) json["output"] = output_json(in.output);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qkv
