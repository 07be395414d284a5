#include "convert/tensor_map.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

std::string described(const ForeignTensors& tensors, const std::string& name) {
  const TensorView& tensor = tensors.at(name);
  return describe(tensor.dtype, tensor.shape);
}

// The names as the file at hand has them: with the prefix, or without it.
class Names {
 public:
  Names(const ForeignTensors& tensors, const std::string& prefix)
      : cut_(std::ranges::none_of(tensors.all(), [&](const auto& t) { return t.first.starts_with(prefix); })
                 ? prefix.size()
                 : 0),
        prefix_(prefix) {}

  std::string of(const std::string& name) const {
    return cut_ > 0 && name.starts_with(prefix_) ? name.substr(cut_) : name;
  }

 private:
  size_t cut_;
  const std::string& prefix_;
};

// The name under which the file holds a tensor.
std::string held_name(ForeignTensors& tensors, const TensorRule& rule, const Names& names) {
  std::string held = names.of(rule.theirs);
  for (const std::vector<std::string>* others : {&rule.aliases, &rule.old_names})
    for (const std::string& alias : *others) {
      const std::string other = names.of(alias);
      if (!tensors.has(other)) continue;
      if (!tensors.has(held)) held = other;
      if (!tensors.same(held, other))
        fail("{}: must equal tensor {}, another name for the same parameter", in_file(tensors.path(), other),
             excerpt(held));
      tensors.ignore(other);
    }
  return held;
}

// The shape whose rows are shared out, and checks of what the rule says of it.
std::vector<int64_t> rows_of(const ForeignTensors& tensors, const TensorRule& rule, const std::string& name) {
  const TensorView& tensor = tensors.at(name);
  std::vector<int64_t> shape = tensor.shape;
  if (rule.reshape) {
    if (shape != rule.reshape->theirs || byte_count(tensor.dtype, rule.reshape->ours) != tensor.data.size())
      fail("{}: must be {} (is {})", in_file(tensors.path(), name), describe(tensor.dtype, rule.reshape->theirs),
           described(tensors, name));
    shape = rule.reshape->ours;
  }
  if (rule.layout == Layout::columns) {
    shape = tensors.shape(name, 2);
    std::swap(shape[0], shape[1]);
  }
  if (shape.empty()) fail("{}: must be an array (is a single number)", in_file(tensors.path(), name));
  const int64_t left = shape[0] - rule.first_row;
  if (left < 1 || (rule.last_rows > 0 && left != rule.last_rows))
    fail("{}: must have {} rows (has {})", in_file(tensors.path(), name), rule.first_row + rule.last_rows, shape[0]);
  shape[0] = left;
  return shape;
}

// Shares out the rows of a tensor: returns those of each parameter.
std::vector<int64_t> rows_of_parts(const ForeignTensors& tensors, const TensorRule& rule, const std::string& name,
                                   int64_t rows) {
  const int64_t parts = std::ssize(rule.ours);
  if (rule.rows.empty()) {
    if (rows % parts != 0 || rows / parts % rule.groups != 0)
      fail("{}: must hold {} parts of the same size{} (is {})", in_file(tensors.path(), name), parts,
           rule.groups > 1 ? fmt::format(" in each of {} groups", rule.groups) : "", described(tensors, name));
    return std::vector<int64_t>(rule.ours.size(), rows / parts);
  }
  int64_t left = rows;
  for (const int64_t part : rule.rows) left = part > left ? -1 : left - part;  // a sum could overflow
  if (left != 0)
    fail("{}: must have {} rows (is {})", in_file(tensors.path(), name), fmt::join(rule.rows, " + "),
         described(tensors, name));
  return rule.rows;
}

void use(ForeignTensors& tensors, const TensorRule& rule, const std::string& name, const Names& names) {
  std::vector<int64_t> shape = rows_of(tensors, rule, name);
  const std::vector<int64_t> parts = rows_of_parts(tensors, rule, name, shape[0]);
  RowPlaces rows{rule.first_row, 1, shape[0] / rule.groups, rule.interleaved};
  for (size_t i = 0; i < parts.size(); i++) {
    rows.group = parts[i] / rule.groups;
    if (rule.interleaved > 0 && rows.group % rule.interleaved != 0)
      fail("{}: must hold heads of {} rows (is {})", in_file(tensors.path(), name), rule.interleaved,
           described(tensors, name));
    shape[0] = parts[i];
    tensors.use(rule.ours[i], name,
                {shape, rows, rule.layout == Layout::columns, rule.factor, static_cast<float>(rule.offset)});
    rows.begin += rows.group;
  }
  if (!rule.addend.empty()) tensors.add_first_row(rule.ours.front(), names.of(rule.addend));
}

// Ignores the tensors of modules after the last hidden state, and returns which of these there were.
// A head of which some tensors are used is named with the module in it.
std::set<std::string> ignore_heads(ForeignTensors& tensors, const TensorMap& map) {
  const auto head_of = [&](const std::string& name) {
    const std::string inner = name.starts_with(map.prefix) ? name.substr(map.prefix.size()) : name;
    const size_t end = inner.find('.');
    return std::pair(inner.substr(0, end), inner.substr(0, inner.find('.', std::min(inner.size(), end) + 1)));
  };
  std::set<std::string> used, found;
  for (const auto& [name, tensor] : tensors.all())
    if (tensors.is_used(name)) used.insert(head_of(name).first);
  for (const auto& [name, tensor] : tensors.all()) {
    if (tensors.is_used(name)) continue;
    const auto [head, module] = head_of(name);
    if (std::ranges::find(map.heads, head) == map.heads.end()) continue;
    tensors.ignore(name);
    found.insert(used.contains(head) ? module : head);
  }
  return found;
}

}  // namespace

void TensorMap::add_module(const ModuleRule& module) {
  const auto tensor = [&](const std::string& ending, const std::string& old, const char* ours) {
    TensorRule rule{.theirs = module.theirs + ending, .ours = {}, .groups = module.groups, .rows = module.rows};
    if (!old.empty()) rule.old_names.push_back(module.theirs + old);
    for (const std::string& name : module.ours) rule.ours.push_back(name + ours);
    return rule;
  };
  TensorRule weight = tensor(module.weight_name, module.old_weight_name, ".weight");
  weight.layout = module.layout;
  weight.offset = module.weight_offset;
  rules.push_back(std::move(weight));
  if (module.bias) rules.push_back(tensor(module.bias_name, module.old_bias_name, ".bias"));
}

bool norm_has_bias(const ModelConfig& config) { return config.norm.kind == NormKind::layer; }

std::set<std::string> map_tensors(ForeignTensors& tensors, const TensorMap& map) {
  const Names names(tensors, map.prefix);
  for (const TensorRule& rule : map.rules) use(tensors, rule, held_name(tensors, rule, names), names);
  for (const auto& [name, size] : map.zeros) tensors.add_zeros(name, size);
  for (const std::string& name : map.unused) tensors.ignore(names.of(name));
  const std::set<std::string> heads = ignore_heads(tensors, map);
  tensors.refuse_unused();
  return heads;
}

}  // namespace qkv
