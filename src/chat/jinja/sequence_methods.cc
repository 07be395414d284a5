// The methods of Python's list, tuple and dict that change nothing.
#include <algorithm>

#include "chat/jinja/functions.h"
#include "chat/jinja/renderer.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

Value call_index(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "index", {"value", "start", "stop"});
  const std::vector<Value>& items = sequence_of(self)->items;
  const int64_t size = std::ssize(items);
  const auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t end = place(p.integer(2, size));
  r.budget().work(extent_of(self).bytes);
  for (int64_t i = place(p.integer(1, 0)); i < end; i++)
    if (equal(items[static_cast<size_t>(i)], p.get(0))) return i;
  fail("chat template: the value is not in the list");
}

Value call_count_items(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "count", {"value"});
  r.budget().work(extent_of(self).bytes);
  return static_cast<int64_t>(
      std::ranges::count_if(sequence_of(self)->items, [&](const Value& item) { return equal(item, p.get(0)); }));
}

Value call_copy(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "copy", {});
  return self;
}

Value call_get(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "get", {"key", "default"});
  if (const Value* found = dict_of(self)->find(p.get(0))) return *found;
  return p.find(1) ? *p.find(1) : None{};
}

Value call_keys(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "keys", {});
  return r.sequence(SequenceKind::view, r.iterate(self)->items);
}

Value call_values(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "values", {});
  std::vector<Value> values;
  for (const auto& [key, value] : dict_of(self)->entries) values.push_back(value);
  return r.sequence(SequenceKind::view, std::move(values));
}

Value call_items(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "items", {});
  return r.sequence(SequenceKind::view, items_of_dict(r, *dict_of(self)));
}

constexpr Function kSequenceMethods[] = {{"index", call_index}, {"count", call_count_items}, {"copy", call_copy}};
constexpr Function kDictMethods[] = {
    {"get", call_get}, {"keys", call_keys}, {"values", call_values}, {"items", call_items}, {"copy", call_copy}};

}  // namespace

std::vector<Value> items_of_dict(Renderer& r, const Dict& dict) {
  r.budget().work(dict.entries.size() * (sizeof(Sequence) + 2 * sizeof(Value)));
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries) items.push_back(r.sequence(SequenceKind::tuple, {key, value}));
  return items;
}

const Function* find_sequence_method(std::string_view name) { return find_in(kSequenceMethods, name); }
const Function* find_dict_method(std::string_view name) { return find_in(kDictMethods, name); }

}  // namespace qkv::jinja
