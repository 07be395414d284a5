#include "chat/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"

namespace qkv::jinja {
namespace {

constexpr size_t kMostBytes = size_t{1} << 40;  // more are not distinguished

Extent operator+(const Extent& a, const Extent& b) {
  return {std::max(a.depth, b.depth), std::min(a.bytes + b.bytes, kMostBytes)};
}

// Adds the brackets.
Extent one_deeper(Extent extent) {
  extent.bytes += 16;
  if (extent.depth++ >= kMaxValueDepth) fail("chat template: lists are nested more than {} deep", kMaxValueDepth);
  return extent;
}

Extent extent_of_items(const std::vector<Value>& items) {
  Extent extent;
  for (const Value& item : items) extent = extent + extent_of(item);
  return one_deeper(extent);
}

Extent extent_of_entries(const Dict::Entries& entries) {
  Extent extent;
  for (const auto& [key, value] : entries) extent = extent + extent_of(key) + extent_of(value);
  return one_deeper(extent);
}

std::optional<int> order(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return {};
  return a < b ? -1 : a > b ? 1 : 0;
}

// Lists and tuples have an order of their own kind only.
bool have_order(const Sequence& a, const Sequence& b) {
  return a.kind == b.kind && (a.kind == SequenceKind::list || a.kind == SequenceKind::tuple);
}

std::optional<int> compare_items(const Sequence& a, const Sequence& b, std::string_view symbol) {
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; i++)
    if (!equal(a.items[i], b.items[i])) return compare(a.items[i], b.items[i], symbol);
  return a.items.size() < b.items.size() ? -1 : a.items.size() > b.items.size() ? 1 : 0;
}

bool equal_dicts(const Dict& a, const Dict& b) {
  return a.entries.size() == b.entries.size() && std::ranges::all_of(a.entries, [&](const auto& entry) {
           const Value* other = b.find(entry.first);
           return other && equal(entry.second, *other);
         });
}

}  // namespace

Sequence::Sequence(SequenceKind k, std::vector<Value> values, Budget* budget)
    : kind(k),
      items(std::move(values)),
      extent(extent_of_items(items)),
      charge(budget, sizeof(Sequence) + items.capacity() * sizeof(Value)) {}

Dict::Dict(Entries e, Budget* budget)
    : entries(std::move(e)),
      extent(extent_of_entries(entries)),
      charge(budget, sizeof(Dict) + entries.capacity() * sizeof(Entries::value_type)) {}

const Value* Dict::find(const Value& key) const {
  if (const MarkedText* text = text_of(key)) return find(std::string_view(text->bytes));
  const auto place = std::ranges::find_if(entries, [&](const auto& entry) { return equal(entry.first, key); });
  return place == entries.end() ? nullptr : &place->second;
}

const Value* Dict::find(std::string_view key) const {
  const auto place = std::ranges::find_if(entries, [&](const auto& entry) {
    const MarkedText* text = text_of(entry.first);
    return text && text->bytes == key;
  });
  return place == entries.end() ? nullptr : &place->second;
}

Value* Namespace::find(std::string_view name) {
  const auto place = std::ranges::find(attributes, name, [](const auto& a) { return std::string_view(a.first); });
  return place == attributes.end() ? nullptr : &place->second;
}

bool is_undefined(const Value& value) { return std::holds_alternative<Undefined>(value); }
bool is_none(const Value& value) { return std::holds_alternative<None>(value); }

const MarkedText* text_of(const Value& value) {
  const auto* text = std::get_if<TextPtr>(&value);
  return text ? &(*text)->text : nullptr;
}
const Sequence* sequence_of(const Value& value) {
  const auto* sequence = std::get_if<SequencePtr>(&value);
  return sequence ? sequence->get() : nullptr;
}
const Dict* dict_of(const Value& value) {
  const auto* dict = std::get_if<DictPtr>(&value);
  return dict ? dict->get() : nullptr;
}

std::optional<int64_t> integer_of(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  return {};
}
std::optional<double> number_of(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto integer = integer_of(value)) return static_cast<double>(*integer);
  return {};
}

Extent extent_of(const Value& value) {
  if (const MarkedText* text = text_of(value)) return {0, 16 + text->bytes.size()};
  if (const Sequence* sequence = sequence_of(value)) return sequence->extent;
  if (const Dict* dict = dict_of(value)) return dict->extent;
  return {0, 16};
}

std::string type_name(const Value& value) {
  if (const Sequence* sequence = sequence_of(value)) {
    static constexpr const char* kNames[] = {"list", "tuple", "dict_view", "range", "generator"};
    return kNames[static_cast<size_t>(sequence->kind)];
  }
  static constexpr const char* kNames[] = {"Undefined", "NoneType", "bool",  "int",       "float",
                                           "str",       "list",     "dict",  "Namespace", "LoopContext",
                                           "Macro",     "function", "method"};
  return kNames[value.index()];
}

std::string object_name(const Value& value) { return is_none(value) ? "None" : type_name(value) + " object"; }

bool is_true(const Value& value) {
  if (is_undefined(value) || is_none(value)) return false;
  if (const auto number = number_of(value)) return *number != 0;
  if (const MarkedText* text = text_of(value)) return !text->bytes.empty();
  if (const Dict* dict = dict_of(value)) return !dict->entries.empty();
  if (const Sequence* sequence = sequence_of(value))
    return sequence->kind == SequenceKind::iterator || !sequence->items.empty();
  return true;
}

bool equal(const Value& a, const Value& b) {
  const auto i = integer_of(a), j = integer_of(b);
  if (i && j) return *i == *j;
  if (const auto x = number_of(a), y = number_of(b); x && y) return *x == *y;
  if (a.index() != b.index()) return false;
  if (const MarkedText* text = text_of(a)) return text->bytes == text_of(b)->bytes;
  if (const Dict* dict = dict_of(a)) return equal_dicts(*dict, *dict_of(b));
  if (const Sequence* sequence = sequence_of(a)) {
    const Sequence* other = sequence_of(b);
    if (sequence->kind == SequenceKind::iterator) return sequence == other;
    return sequence->kind == other->kind && std::ranges::equal(sequence->items, other->items, equal);
  }
  if (is_undefined(a) || is_none(a)) return true;
  if (const auto* space = std::get_if<Namespace*>(&a)) return *space == std::get<Namespace*>(b);
  if (const auto* loop = std::get_if<Loop*>(&a)) return *loop == std::get<Loop*>(b);
  if (const auto* macro = std::get_if<const Macro*>(&a)) return *macro == std::get<const Macro*>(b);
  if (const auto* function = std::get_if<const Function*>(&a)) return *function == std::get<const Function*>(b);
  return false;
}

std::optional<int> compare(const Value& a, const Value& b, std::string_view symbol) {
  check_defined(a);
  check_defined(b);
  const auto i = integer_of(a), j = integer_of(b);
  if (i && j) return *i < *j ? -1 : *i > *j ? 1 : 0;
  if (const auto x = number_of(a), y = number_of(b); x && y) return order(*x, *y);
  const MarkedText *s = text_of(a), *t = text_of(b);
  if (s && t) return s->bytes.compare(t->bytes);
  const Sequence *p = sequence_of(a), *q = sequence_of(b);
  if (p && q && have_order(*p, *q)) return compare_items(*p, *q, symbol);
  fail("chat template: '{}' not supported between instances of '{}' and '{}'", symbol, type_name(a), type_name(b));
}

void fail_undefined(const Undefined& value) {
  fail("chat template: {}", value.why ? *value.why : "a value is undefined");
}

void check_defined(const Value& value) {
  if (const auto* undefined = std::get_if<Undefined>(&value)) fail_undefined(*undefined);
}

}  // namespace qkv::jinja
