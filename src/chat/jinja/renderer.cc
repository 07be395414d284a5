#include "chat/jinja/renderer.h"

#include <algorithm>
#include <array>

#include "chat/jinja/characters.h"
#include "chat/jinja/functions.h"
#include "chat/jinja/print.h"
#include "chat/jinja/syntax.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

constexpr size_t kObjectBytes = 160;

}  // namespace

void Scope::set(std::string_view name, Value value) {
  const auto place = std::ranges::find(variables, name, [](const auto& variable) { return variable.first; });
  if (place != variables.end())
    place->second = std::move(value);
  else
    variables.emplace_back(name, std::move(value));
}

Renderer::Renderer(size_t input_bytes, std::time_t now) : budget_(input_bytes), now_(now) {}

Value Renderer::text(MarkedText text) {
  budget_.work(text.size());
  return std::make_shared<const Text>(std::move(text), &budget_);
}
Value Renderer::sequence(SequenceKind kind, std::vector<Value> items) {
  budget_.work(items.size() * sizeof(Value));
  return std::make_shared<const Sequence>(kind, std::move(items), &budget_);
}
Value Renderer::dict(Dict::Entries entries) {
  budget_.work(entries.size() * sizeof(Dict::Entries::value_type));
  return std::make_shared<const Dict>(std::move(entries), &budget_);
}
Value Renderer::undefined(std::string why) { return Undefined{std::make_shared<const std::string>(std::move(why))}; }

Namespace* Renderer::new_namespace() {
  budget_.take(kObjectBytes);
  return &namespaces_.emplace_back();
}
Loop* Renderer::new_loop(SequencePtr items) {
  budget_.take(kObjectBytes);
  return &loops_.emplace_back(Loop{.items = std::move(items)});
}
const Macro* Renderer::new_macro(const MacroBody* body) {
  budget_.take(kObjectBytes);
  return &macros_.emplace_back(Macro{body, scope_});
}

SequencePtr Renderer::iterate(const Value& value) {
  if (const auto* found = std::get_if<SequencePtr>(&value)) {
    const Sequence& sequence = **found;
    if (sequence.kind != SequenceKind::iterator) return *found;
    const size_t next = std::exchange(sequence.next, sequence.items.size());
    if (next == 0) return *found;
    return std::get<SequencePtr>(
        list({sequence.items.begin() + static_cast<std::ptrdiff_t>(next), sequence.items.end()}));
  }
  std::vector<Value> items;
  if (const Dict* dict = dict_of(value)) {
    for (const auto& [key, entry] : dict->entries) items.push_back(key);
  } else if (const MarkedText* text = text_of(value)) {
    const std::vector<size_t> places = character_places(text->bytes);
    budget_.work(places.size() * sizeof(Text));
    for (size_t i = 0; i + 1 < places.size(); i++) items.push_back(this->text(text->part(places[i], places[i + 1])));
  } else if (!is_undefined(value)) {
    fail("chat template: '{}' object is not iterable", type_name(value));
  }
  return std::get<SequencePtr>(list(std::move(items)));
}

void Renderer::set_attribute(Namespace& space, std::string_view name, Value value) {
  if (name.starts_with('_'))
    fail("chat template: a namespace cannot have the attribute {}, which begins with an underscore", name);
  budget_.work(space.attributes.size() * sizeof(Value));
  if (Value* found = space.find(name)) {
    *found = std::move(value);
    return;
  }
  budget_.take(kObjectBytes + name.size());
  space.attributes.emplace_back(name, std::move(value));
}

Value Renderer::find_variable(std::string_view name) const {
  for (const Scope* scope = scope_.get(); scope; scope = scope->outer.get())
    for (const auto& [known, value] : scope->variables)
      if (known == name) return value;
  if (const Function* function = find_global(name)) return function;
  return undefined(fmt::format("'{}' is undefined", name));
}

void Renderer::set_variable(std::string_view name, Value value) { scope_->set(name, std::move(value)); }

Renderer::InScope::InScope(Renderer& r, std::shared_ptr<Scope> outer) : r_(r), before_(r.scope_) {
  r.scope_ = std::make_shared<Scope>(Scope{std::move(outer)});
}

Value Renderer::Capture::take() {
  r_.budget_.give_back(text_.size());
  return r_.text(std::move(text_));
}

Value Renderer::call(const Value& callee, const Arguments& arguments) {
  check_defined(callee);
  if (const auto* function = std::get_if<const Function*>(&callee)) return (*function)->call(*this, None{}, arguments);
  if (const auto* macro = std::get_if<const Macro*>(&callee)) return call_macro(**macro, arguments);
  if (const auto* method = std::get_if<std::shared_ptr<const Method>>(&callee)) {
    const Value& self = (*method)->self;
    budget_.work(extent_of(self).bytes);
    return (*method)->function->call(*this, self, arguments);
  }
  fail("chat template: '{}' object is not callable", type_name(callee));
}

std::string Renderer::time_as(const std::string& format) const {
  if (format.empty()) return "";
  std::tm local = {};
  localtime_r(&now_, &local);
  std::array<char, 1024> text;
  const size_t length = std::strftime(text.data(), text.size(), format.c_str(), &local);
  return {text.data(), length};
}

void Renderer::write(const MarkedText& text) {
  budget_.take(text.size() + text.data.size() * sizeof(ByteRange));
  budget_.work(text.size());
  output_->append(text);
}

void Renderer::write(const Value& value) {
  if (const MarkedText* text = text_of(value)) return write(*text);
  budget_.work(extent_of(value).bytes);
  write(str_of(value));
}

void set_entry(Dict::Entries& entries, const Value& key, Value value) {
  check_defined(key);
  if (dict_of(key) || (sequence_of(key) && sequence_of(key)->kind == SequenceKind::list))
    fail("chat template: unhashable type: '{}'", type_name(key));
  for (auto& [known, entry] : entries)
    if (equal(known, key)) {
      entry = std::move(value);
      return;
    }
  entries.emplace_back(key, std::move(value));
}

Value Renderer::call_macro(const Macro& macro, const Arguments& arguments) {
  const MacroBody& body = *macro.body;
  const size_t count = body.parameters.size(), first_default = count - body.defaults.size();
  if (arguments.positional.size() > count)
    fail("chat template: macro '{}' takes not more than {} argument(s)", body.name, count);
  budget_.enter();
  const InScope scope(*this, macro.scope);
  for (const auto& [name, value] : arguments.named) {
    const auto place = std::ranges::find(body.parameters, name);
    if (place == body.parameters.end() && name != "caller")
      fail("chat template: macro '{}' takes no keyword argument '{}'", body.name, name);
    if (place != body.parameters.end())
      set_variable(*place, value);
    else
      set_variable("caller", value);
  }
  for (size_t i = 0; i < count; i++) {
    const std::string& name = body.parameters[i];
    const bool is_named = std::ranges::any_of(arguments.named, [&](const auto& named) { return named.first == name; });
    if (i < arguments.positional.size()) {
      if (is_named) fail("chat template: macro '{}' got multiple values for argument '{}'", body.name, name);
      set_variable(name, arguments.positional[i]);
    } else if (!is_named) {
      set_variable(name, i >= first_default ? body.defaults[i - first_default]->value(*this)
                                            : undefined(fmt::format("parameter '{}' was not provided", name)));
    }
  }
  Capture capture(*this);
  body.block.execute(*this);
  Value text = capture.take();
  budget_.leave();
  return text;
}

}  // namespace qkv::jinja
