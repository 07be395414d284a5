// Filters of lists and of values of any type.
#include <algorithm>
#include <functional>

#include "chat/jinja/characters.h"
#include "chat/jinja/print.h"
#include "chat/jinja/renderer.h"
#include "chat/jinja/text_filters.h"
#include "chat/jinja/text_parts.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

bool is_given(const Value* value) { return value && !is_none(*value); }

// Reads a path such as "function.name" or 0 from a value.
Value value_at(Renderer& r, const Value& value, const Value& path) {
  if (!text_of(path)) return get_item(r, value, path);
  const std::string& names = text_of(path)->bytes;
  Value found = value;
  for (const ByteRange& part : split_at(names, ".", -1, false)) {
    const std::string name = names.substr(part.begin, part.end - part.begin);
    const bool is_number =
        !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos;
    found = get_item(r, found, is_number ? Value(int64_t{std::stol(name)}) : r.text(name));
  }
  return found;
}

// Letter case does not count in comparisons unless a filter asks for it.
Value folded(Renderer& r, const Value& value, bool case_sensitive) {
  const MarkedText* text = text_of(value);
  return text && !case_sensitive ? r.text(cased(*text, LetterCase::lower)) : value;
}

// The keys by which items are compared: an attribute of each, or the items.
std::vector<Value> keys_of(Renderer& r, const std::vector<Value>& items, const Value* attribute, bool case_sensitive) {
  std::vector<Value> keys;
  for (const Value& item : items) {
    r.budget().step();
    keys.push_back(folded(r, is_given(attribute) ? value_at(r, item, *attribute) : item, case_sensitive));
  }
  return keys;
}

std::vector<size_t> sorted_order(Renderer& r, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    r.budget().step();
    r.budget().work(std::min(extent_of(keys[a]).bytes, extent_of(keys[b]).bytes));
    return reverse ? compare(keys[b], keys[a]).value_or(0) < 0 : compare(keys[a], keys[b]).value_or(0) < 0;
  });
  return order;
}

Value filter_default(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "default", {"default_value", "boolean"});
  if (!is_undefined(self) && (!p.flag(1) || is_true(self))) return self;
  return p.find(0) ? *p.find(0) : r.text("");
}

Value filter_length(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "length", {});
  if (is_undefined(self)) return int64_t{0};
  if (const Dict* dict = dict_of(self)) return std::ssize(dict->entries);
  if (const Sequence* sequence = sequence_of(self); sequence && sequence->kind != SequenceKind::iterator)
    return std::ssize(sequence->items);
  const MarkedText* text = text_of(self);
  if (!text) fail("chat template: object of type '{}' has no len()", type_name(self));
  r.budget().work(text->size());
  return static_cast<int64_t>(
      std::ranges::count_if(text->bytes, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Value filter_first(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "first", {});
  const Sequence* sequence = sequence_of(self);
  if (sequence && sequence->kind == SequenceKind::iterator)
    return sequence->next < sequence->items.size() ? sequence->items[sequence->next++]
                                                   : Renderer::undefined("No first item, sequence was empty.");
  const SequencePtr items = r.iterate(self);
  return items->items.empty() ? Renderer::undefined("No first item, sequence was empty.") : items->items.front();
}

Value filter_last(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "last", {});
  const Sequence* sequence = sequence_of(self);
  if (sequence && sequence->kind == SequenceKind::iterator) fail("chat template: 'generator' object is not reversible");
  const SequencePtr items = r.iterate(self);
  return items->items.empty() ? Renderer::undefined("No last item, sequence was empty.") : items->items.back();
}

Value filter_list(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "list", {});
  return r.list(r.iterate(self)->items);
}

Value filter_reverse(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "reverse", {});
  std::vector<Value> items = r.iterate(self)->items;
  std::ranges::reverse(items);
  if (!text_of(self)) return r.sequence(SequenceKind::iterator, std::move(items));
  MarkedText text;
  for (const Value& item : items) text.append(*text_of(item));
  return r.text(std::move(text));
}

Value filter_join(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "join", {"d", "attribute"});
  const SequencePtr items = r.iterate(self);
  const MarkedText separator = p.find(0) ? str_of(*p.find(0)) : MarkedText();
  MarkedText text;
  for (size_t i = 0; i < items->items.size(); i++) {
    const Value item = is_given(p.find(1)) ? value_at(r, items->items[i], *p.find(1)) : items->items[i];
    r.budget().step();
    r.budget().work(extent_of(item).bytes + separator.size());
    if (i > 0) text.append(separator);
    append_str(text, item);
  }
  return r.text(std::move(text));
}

Value filter_items(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "items", {});
  if (!is_undefined(self) && !dict_of(self)) fail("chat template: Can only get item pairs from a mapping.");
  return r.sequence(SequenceKind::iterator, dict_of(self) ? items_of_dict(r, *dict_of(self)) : std::vector<Value>());
}

Value filter_dictsort(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "dictsort", {"case_sensitive", "by", "reverse"});
  const Dict* dict = dict_of(self);
  check_defined(self);
  const std::string by = p.text(1, "key");
  if (!dict) fail("chat template: dictsort needs a dict, not {}", type_name(self));
  if (by != "key" && by != "value") fail("chat template: You can only sort by either \"key\" or \"value\"");
  const std::vector<Value> items = items_of_dict(r, *dict);
  const Value place = int64_t{by == "key" ? 0 : 1};
  std::vector<Value> sorted;
  for (const size_t i : sorted_order(r, keys_of(r, items, &place, p.flag(0)), p.flag(2))) sorted.push_back(items[i]);
  return r.list(std::move(sorted));
}

Value filter_sort(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "sort", {"reverse", "case_sensitive", "attribute"});
  const SequencePtr items = r.iterate(self);
  std::vector<Value> sorted;
  for (const size_t i : sorted_order(r, keys_of(r, items->items, p.find(2), p.flag(1)), p.flag(0)))
    sorted.push_back(items->items[i]);
  return r.list(std::move(sorted));
}

Value filter_unique(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "unique", {"case_sensitive", "attribute"});
  const SequencePtr items = r.iterate(self);
  const std::vector<Value> keys = keys_of(r, items->items, p.find(1), p.flag(0));
  std::vector<Value> kept, seen;
  for (size_t i = 0; i < keys.size(); i++) {
    r.budget().work(seen.size() * sizeof(Value) + extent_of(keys[i]).bytes);
    if (std::ranges::any_of(seen, [&](const Value& key) { return equal(key, keys[i]); })) continue;
    seen.push_back(keys[i]);
    kept.push_back(items->items[i]);
  }
  return r.sequence(SequenceKind::iterator, std::move(kept));
}

template <bool kMax>
Value filter_extreme(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, kMax ? "max" : "min", {"case_sensitive", "attribute"});
  const SequencePtr items = r.iterate(self);
  if (items->items.empty()) return Renderer::undefined("No aggregated item, sequence was empty.");
  const std::vector<Value> keys = keys_of(r, items->items, p.find(1), p.flag(0));
  size_t best = 0;
  for (size_t i = 1; i < keys.size(); i++) {
    r.budget().work(extent_of(keys[i]).bytes);
    const int order = compare(keys[i], keys[best]).value_or(0);
    if (kMax ? order > 0 : order < 0) best = i;
  }
  return items->items[best];
}

Value filter_sum(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "sum", {"attribute", "start"});
  Value total = p.find(1) ? *p.find(1) : int64_t{0};
  const SequencePtr items = r.iterate(self);
  for (const Value& item : items->items)
    total = add(r, total, is_given(p.find(0)) ? value_at(r, item, *p.find(0)) : item);
  return total;
}

Value filter_groupby(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "groupby", {"attribute", "default", "case_sensitive"});
  const std::vector<Value> items = r.iterate(self)->items;
  std::vector<Value> found, keys;
  for (const Value& item : items) {
    Value value = value_at(r, item, p.get(0));
    found.push_back(is_undefined(value) && p.find(1) ? *p.find(1) : std::move(value));
    keys.push_back(folded(r, found.back(), p.flag(2)));
  }
  std::vector<Value> groups;
  const std::vector<size_t> order = sorted_order(r, keys, false);
  for (size_t begin = 0; begin < order.size();) {
    std::vector<Value> group;
    size_t end = begin;
    for (; end < order.size() && equal(keys[order[end]], keys[order[begin]]); end++) group.push_back(items[order[end]]);
    groups.push_back(r.sequence(SequenceKind::tuple, {found[order[begin]], r.list(std::move(group))}));
    begin = end;
  }
  return r.list(std::move(groups));
}

Value filter_batch(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "batch", {"linecount", "fill_with"});
  p.get(0);
  const int64_t count = p.integer(0, 1);
  if (count < 1 || count > 10'000) fail("chat template: batch: linecount must be between 1 and 10000 (is {})", count);
  std::vector<Value> batches, batch;
  const SequencePtr items = r.iterate(self);
  for (const Value& item : items->items) {
    if (std::ssize(batch) == count) batches.push_back(r.list(std::exchange(batch, {})));
    batch.push_back(item);
  }
  if (!batch.empty() && is_given(p.find(1))) batch.resize(static_cast<size_t>(count), *p.find(1));
  if (!batch.empty()) batches.push_back(r.list(std::move(batch)));
  return r.sequence(SequenceKind::iterator, std::move(batches));
}

Value filter_attr(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "attr", {"name"});
  if (dict_of(self) && !find_dict_method(p.marked(0).bytes))
    return Renderer::undefined(fmt::format("'dict object' has no attribute '{}'", p.marked(0).bytes));
  return get_attribute(r, self, p.marked(0).bytes);
}

// The rest of the arguments behind the first `count`.
Arguments rest_of(const Arguments& arguments, size_t count) {
  return {{arguments.positional.begin() + static_cast<std::ptrdiff_t>(count), arguments.positional.end()},
          arguments.named};
}

Value filter_map(Renderer& r, const Value& self, const Arguments& arguments) {
  std::function<Value(const Value&)> apply;
  if (arguments.positional.empty()) {
    const Parameters p(arguments, "map", {"attribute", "default"});
    p.get(0);
    apply = [&r, path = *p.find(0), otherwise = p.find(1) ? *p.find(1) : Value()](const Value& item) {
      Value found = value_at(r, item, path);
      return is_undefined(found) && !is_undefined(otherwise) ? otherwise : found;
    };
  } else {
    const MarkedText* name = text_of(arguments.positional.front());
    const Function* filter = name ? find_filter(name->bytes) : nullptr;
    if (!filter) fail("chat template: map: no filter named '{}'", str_of(arguments.positional.front()).bytes);
    apply = [&r, filter, rest = rest_of(arguments, 1)](const Value& item) { return filter->call(r, item, rest); };
  }
  std::vector<Value> mapped;
  const SequencePtr items = r.iterate(self);
  r.budget().enter();
  for (const Value& item : items->items) {
    r.budget().step();
    mapped.push_back(apply(item));
  }
  r.budget().leave();
  return r.sequence(SequenceKind::iterator, std::move(mapped));
}

// Keeps the items, or the items of which an attribute, for which a test holds, or does not.
template <bool kSelect, bool kAttribute>
Value filter_select(Renderer& r, const Value& self, const Arguments& arguments) {
  const size_t skipped = kAttribute ? 1 : 0;
  if (arguments.positional.size() < skipped) fail("chat template: selectattr needs the name of an attribute");
  const Function* test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > skipped) {
    const MarkedText* name = text_of(arguments.positional[skipped]);
    test = name ? find_test(name->bytes) : nullptr;
    if (!test) fail("chat template: no test named '{}'", str_of(arguments.positional[skipped]).bytes);
    rest = rest_of(arguments, skipped + 1);
  }
  std::vector<Value> kept;
  const SequencePtr items = r.iterate(self);
  for (const Value& item : items->items) {
    r.budget().step();
    const Value value = kAttribute ? value_at(r, item, arguments.positional.front()) : item;
    if (is_true(test ? test->call(r, value, rest) : value) == kSelect) kept.push_back(item);
  }
  return r.sequence(SequenceKind::iterator, std::move(kept));
}

constexpr Function kListFilters[] = {{"attr", filter_attr},
                                     {"batch", filter_batch},
                                     {"count", filter_length},
                                     {"d", filter_default},
                                     {"default", filter_default},
                                     {"dictsort", filter_dictsort},
                                     {"first", filter_first},
                                     {"groupby", filter_groupby},
                                     {"items", filter_items},
                                     {"join", filter_join},
                                     {"last", filter_last},
                                     {"length", filter_length},
                                     {"list", filter_list},
                                     {"map", filter_map},
                                     {"max", filter_extreme<true>},
                                     {"min", filter_extreme<false>},
                                     {"reject", filter_select<false, false>},
                                     {"rejectattr", filter_select<false, true>},
                                     {"reverse", filter_reverse},
                                     {"select", filter_select<true, false>},
                                     {"selectattr", filter_select<true, true>},
                                     {"sort", filter_sort},
                                     {"sum", filter_sum},
                                     {"unique", filter_unique}};

}  // namespace

const Function* find_filter(std::string_view name) {
  const Function* filter = find_in(kListFilters, name);
  return filter ? filter : find_text_filter(name);
}

}  // namespace qkv::jinja
