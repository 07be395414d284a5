#include "chat/jinja/functions.h"

#include <algorithm>

#include "chat/jinja/print.h"
#include "chat/jinja/renderer.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // as Jinja's sandbox has it

Value call_range(Renderer& r, const Value&, const Arguments& arguments) {
  const Parameters p(arguments, "range", {"start", "stop", "step"});
  const bool has_start = p.find(1) != nullptr;
  const int64_t start = has_start ? p.integer(0, 0) : 0, stop = has_start ? p.integer(1, 0) : p.integer(0, 0),
                step = p.integer(2, 1);
  p.get(0);
  if (step == 0) fail("chat template: range() arg 3 must not be zero");
  const __int128 count =
      step > 0 ? (__int128{stop} - start + step - 1) / step : (__int128{start} - stop - step - 1) / -__int128{step};
  if (count > kMaxRange) fail("chat template: a range has more than {} numbers", kMaxRange);
  std::vector<Value> items;
  for (__int128 i = 0; i < count; i++) items.emplace_back(static_cast<int64_t>(start + i * step));
  r.budget().work(items.size() * sizeof(Value));
  return r.sequence(SequenceKind::range, std::move(items));
}

Dict::Entries entries_of(Renderer& r, const Arguments& arguments, std::string_view function) {
  Dict::Entries entries;
  if (arguments.positional.size() > 1)
    fail("chat template: {}() takes at most 1 positional argument ({} given)", function, arguments.positional.size());
  if (!arguments.positional.empty()) {
    const Value& given = arguments.positional.front();
    if (const Dict* dict = dict_of(given)) {
      entries = dict->entries;
    } else {
      const SequencePtr pairs = r.iterate(given);
      for (const Value& pair : pairs->items) {
        const SequencePtr items = r.iterate(pair);
        if (items->items.size() != 2) fail("chat template: {}() needs pairs of a key and a value", function);
        set_entry(entries, items->items[0], items->items[1]);
        r.budget().work(entries.size() * sizeof(entries.front()));
      }
    }
  }
  for (const auto& [name, value] : arguments.named) set_entry(entries, r.text(name), value);
  return entries;
}

Value call_dict(Renderer& r, const Value&, const Arguments& arguments) {
  return r.dict(entries_of(r, arguments, "dict"));
}

Value call_namespace(Renderer& r, const Value&, const Arguments& arguments) {
  Namespace* space = r.new_namespace();
  for (const auto& [key, value] : entries_of(r, arguments, "namespace"))
    r.set_attribute(*space, str_of(key).bytes, value);
  return space;
}

Value call_raise_exception(Renderer&, const Value&, const Arguments& arguments) {
  const Parameters p(arguments, "raise_exception", {"message"});
  throw Error(str_of(p.get(0)).bytes);
}

Value call_strftime_now(Renderer& r, const Value&, const Arguments& arguments) {
  const Parameters p(arguments, "strftime_now", {"format"});
  return r.text(r.time_as(p.marked(0).bytes));
}

constexpr Function kGlobals[] = {{"range", call_range},
                                 {"dict", call_dict},
                                 {"namespace", call_namespace},
                                 {"raise_exception", call_raise_exception},
                                 {"strftime_now", call_strftime_now}};

}  // namespace

const Function* find_global(std::string_view name) { return find_in(kGlobals, name); }

Parameters::Parameters(const Arguments& arguments, std::string_view function,
                       std::initializer_list<std::string_view> names)
    : function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names_.size())
    fail("chat template: {}() takes at most {} arguments ({} given)", function, names_.size(),
         arguments.positional.size());
  for (size_t i = 0; i < arguments.positional.size(); i++) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto place = std::ranges::find(names_, std::string_view(name));
    if (place == names_.end()) fail("chat template: {}() got an unexpected keyword argument '{}'", function, name);
    const auto i = static_cast<size_t>(place - names_.begin());
    if (values_[i]) fail("chat template: {}() got multiple values for argument '{}'", function, name);
    values_[i] = &value;
  }
}

const Value& Parameters::get(size_t i) const {
  if (!values_.at(i)) fail("chat template: {}() missing required argument '{}'", function_, names_[i]);
  check_defined(*values_[i]);
  return *values_[i];
}

std::string Parameters::text(size_t i, std::string_view otherwise) const {
  return values_.at(i) && !is_none(*values_[i]) ? marked(i).bytes : std::string(otherwise);
}

const MarkedText& Parameters::marked(size_t i) const {
  const MarkedText* text = text_of(get(i));
  if (!text) fail("chat template: {}() argument '{}' must be str, not {}", function_, names_[i], type_name(get(i)));
  return *text;
}

int64_t Parameters::integer(size_t i, int64_t otherwise) const {
  if (!values_.at(i) || is_none(*values_[i])) return otherwise;
  const auto integer = integer_of(get(i));
  if (!integer) fail("chat template: {}() argument '{}' must be int, not {}", function_, names_[i], type_name(get(i)));
  return *integer;
}

bool Parameters::flag(size_t i, bool otherwise) const { return values_.at(i) ? is_true(*values_[i]) : otherwise; }

}  // namespace qkv::jinja
