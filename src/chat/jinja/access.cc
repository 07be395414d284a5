// Attributes, items and slices of values.
#include <algorithm>

#include "chat/jinja/characters.h"
#include "chat/jinja/print.h"
#include "chat/jinja/renderer.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

Value bind(const Function* function, const Value& self) {
  return std::make_shared<const Method>(Method{function, self});
}

std::string repr_of(const Value& value) {
  MarkedText text;
  append_repr(text, value);
  return text.bytes;
}

Value missing(const Value& value, const Value& key) {
  if (extent_of(key).bytes > 256) return Renderer::undefined("an item is undefined");
  if (text_of(key))
    return Renderer::undefined(fmt::format("'{}' has no attribute {}", object_name(value), repr_of(key)));
  return Renderer::undefined(fmt::format("{} has no element {}", object_name(value), repr_of(key)));
}

Value call_cycle(Renderer&, const Value& self, const Arguments& arguments) {
  const Loop& loop = *std::get<Loop*>(self);
  if (arguments.positional.empty()) fail("chat template: no items for cycling given");
  return arguments.positional[loop.index % arguments.positional.size()];
}

Value call_changed(Renderer& r, const Value& self, const Arguments& arguments) {
  Loop& loop = *std::get<Loop*>(self);
  for (const Value& value : arguments.positional) r.budget().work(extent_of(value).bytes);
  if (loop.changed && std::ranges::equal(*loop.changed, arguments.positional, equal)) return false;
  r.budget().take(arguments.positional.size() * sizeof(Value));
  loop.changed = arguments.positional;
  return true;
}

constexpr Function kLoopMethods[] = {{"cycle", call_cycle}, {"changed", call_changed}};

Value loop_attribute(const Value& value, std::string_view name) {
  const Loop& loop = *std::get<Loop*>(value);
  const std::vector<Value>& items = loop.items->items;
  const auto index = static_cast<int64_t>(loop.index), length = std::ssize(items);
  if (name == "index0") return index;
  if (name == "index") return index + 1;
  if (name == "revindex") return length - index;
  if (name == "revindex0") return length - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == length;
  if (name == "length") return length;
  if (name == "depth") return int64_t{1};  // loops are not recursive
  if (name == "depth0") return int64_t{0};
  if (name == "previtem") return index > 0 ? items[loop.index - 1] : Renderer::undefined("there is no previous item");
  if (name == "nextitem")
    return index + 1 < length ? items[loop.index + 1] : Renderer::undefined("there is no next item");
  if (const Function* method = find_in(kLoopMethods, name)) return bind(method, value);
  return Renderer::undefined(fmt::format("'LoopContext object' has no attribute '{}'", name));
}

// Returns the attribute that Python's getattr finds, if any.
std::optional<Value> own_attribute(const Value& value, std::string_view name) {
  const Function* method = nullptr;
  if (text_of(value)) method = find_text_method(name);
  if (const Sequence* sequence = sequence_of(value))
    if (sequence->kind != SequenceKind::iterator && sequence->kind != SequenceKind::view)
      method = find_sequence_method(name);
  if (dict_of(value)) method = find_dict_method(name);
  if (method) return bind(method, value);
  if (std::holds_alternative<Loop*>(value)) return loop_attribute(value, name);
  if (const auto* space = std::get_if<Namespace*>(&value))
    if (const Value* found = (*space)->find(name)) return *found;
  return {};
}

std::optional<Value> own_item(Renderer& r, const Value& value, const Value& key) {
  if (const Dict* dict = dict_of(value)) {
    r.budget().work(dict->entries.size() * 16);
    const Value* found = dict->find(key);
    return found ? std::optional<Value>(*found) : std::nullopt;
  }
  const auto integer = integer_of(key);
  if (!integer) return {};
  const auto place = [&](int64_t size) { return *integer < 0 ? *integer + size : *integer; };
  if (const Sequence* sequence = sequence_of(value)) {
    if (sequence->kind == SequenceKind::iterator || sequence->kind == SequenceKind::view) return {};
    const int64_t i = place(std::ssize(sequence->items));
    if (i < 0 || i >= std::ssize(sequence->items)) return {};
    return sequence->items[static_cast<size_t>(i)];
  }
  if (const MarkedText* text = text_of(value)) {
    r.budget().work(text->size() * 4);
    const std::vector<size_t> places = character_places(text->bytes);
    const int64_t i = place(std::ssize(places) - 1);
    if (i < 0 || i + 1 >= std::ssize(places)) return {};
    const auto at = static_cast<size_t>(i);
    return r.text(text->part(places[at], places[at + 1]));
  }
  return {};
}

// The places of a slice of `size` items, as Python's slice.indices gives them.
struct SlicePlaces {
  int64_t begin, end, step;
};
std::optional<SlicePlaces> slice_places(int64_t size, const Value& begin, const Value& end, const Value& step) {
  for (const Value* part : {&begin, &end, &step})
    if (!is_none(*part) && !integer_of(*part)) return {};
  const int64_t by = is_none(step) ? 1 : *integer_of(step);
  if (by == 0) fail("chat template: slice step cannot be zero");
  const int64_t lowest = by < 0 ? -1 : 0, highest = by < 0 ? size - 1 : size;
  const auto place = [&](const Value& part, int64_t otherwise) {
    if (is_none(part)) return otherwise;
    const int64_t at = *integer_of(part);
    return std::clamp(at < 0 ? at + size : at, lowest, highest);
  };
  return SlicePlaces{place(begin, by < 0 ? highest : lowest), place(end, by < 0 ? lowest : highest), by};
}

// Calls f with each place of a slice.
template <class F>
void for_each_place(const SlicePlaces& p, F&& f) {
  for (__int128 i = p.begin; p.step > 0 ? i < p.end : i > p.end; i += p.step) f(static_cast<size_t>(i));
}

}  // namespace

Value get_attribute(Renderer& r, const Value& value, std::string_view name) {
  check_defined(value);
  if (auto found = own_attribute(value, name)) return *found;
  if (const Dict* dict = dict_of(value)) {
    r.budget().work(dict->entries.size() * 16);
    if (const Value* found = dict->find(name)) return *found;
  }
  return Renderer::undefined(fmt::format("'{}' has no attribute '{}'", object_name(value), name));
}

Value get_item(Renderer& r, const Value& value, const Value& key) {
  check_defined(value);
  if (auto found = own_item(r, value, key)) return *found;
  if (const MarkedText* name = text_of(key))
    if (auto found = own_attribute(value, name->bytes)) return *found;
  return missing(value, key);
}

Value get_slice(Renderer& r, const Value& value, const Value& begin, const Value& end, const Value& step) {
  check_defined(value);
  if (const MarkedText* text = text_of(value)) {
    r.budget().work(text->size() * 4);
    const std::vector<size_t> places = character_places(text->bytes);
    const auto p = slice_places(std::ssize(places) - 1, begin, end, step);
    if (!p) return Renderer::undefined("slice indices must be integers");
    if (p->step == 1 && p->begin < p->end)
      return r.text(text->part(places[static_cast<size_t>(p->begin)], places[static_cast<size_t>(p->end)]));
    MarkedText result;
    for_each_place(*p, [&](size_t i) { result.append(*text, places[i], places[i + 1]); });
    return r.text(std::move(result));
  }
  const Sequence* sequence = sequence_of(value);
  if (!sequence || sequence->kind == SequenceKind::iterator || sequence->kind == SequenceKind::view)
    return Renderer::undefined(fmt::format("'{}' has no slices", object_name(value)));
  const auto p = slice_places(std::ssize(sequence->items), begin, end, step);
  if (!p) return Renderer::undefined("slice indices must be integers");
  std::vector<Value> items;
  for_each_place(*p, [&](size_t i) { items.push_back(sequence->items[i]); });
  return r.sequence(sequence->kind, std::move(items));
}

}  // namespace qkv::jinja
