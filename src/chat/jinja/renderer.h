// The state of a rendering: variables, output, limits, and the values that are made.
#pragma once

#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/budget.h"
#include "chat/jinja/functions.h"
#include "chat/jinja/value.h"

namespace qkv::jinja {

// Variables of a block. Those of the blocks around it can be read.
struct Scope {
  std::shared_ptr<Scope> outer = {};
  std::vector<std::pair<std::string_view, Value>> variables = {};  // names live as long as the template

  void set(std::string_view name, Value value);
};

// A for loop that runs.
struct Loop {
  SequencePtr items;
  size_t index = 0;
  std::optional<std::vector<Value>> changed = {};  // arguments of the last call of loop.changed
};

struct MacroBody;
// A macro, with the variables that it can read.
struct Macro {
  const MacroBody* body;
  std::shared_ptr<Scope> scope;
};

class Renderer {
 public:
  // now: seconds since 1970, for strftime_now.
  Renderer(size_t input_bytes, std::time_t now);

  Budget& budget() { return budget_; }

  // Make values. A text without marks is one that the template wrote.
  Value text(MarkedText text);
  Value text(std::string text) { return this->text(MarkedText::of_template(std::move(text))); }
  Value sequence(SequenceKind kind, std::vector<Value> items);
  Value list(std::vector<Value> items) { return sequence(SequenceKind::list, std::move(items)); }
  Value dict(Dict::Entries entries);
  static Value undefined(std::string why);
  Namespace* new_namespace();
  Loop* new_loop(SequencePtr items);
  const Macro* new_macro(const MacroBody* body);

  // Returns the items of a value: of an iterator, those that have not been read, which this reads. Throws Error for a
  // value without items.
  SequencePtr iterate(const Value& value);

  void set_attribute(Namespace& space, std::string_view name, Value value);

  Value find_variable(std::string_view name) const;
  void set_variable(std::string_view name, Value value);
  Value call(const Value& callee, const Arguments& arguments);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  std::string time_as(const std::string& format) const;

  void write(const MarkedText& text);
  void write(const Value& value);

  // Variables of a block, as long as the object lives.
  class InScope {
   public:
    explicit InScope(Renderer& r) : InScope(r, r.scope_) {}
    InScope(Renderer& r, std::shared_ptr<Scope> outer);
    ~InScope() { r_.scope_ = std::move(before_); }
    InScope(const InScope&) = delete;
    InScope& operator=(const InScope&) = delete;

   private:
    Renderer& r_;
    std::shared_ptr<Scope> before_;
  };

  // Collects what is written, as long as the object lives.
  class Capture {
   public:
    explicit Capture(Renderer& r) : r_(r), before_(std::exchange(r.output_, &text_)) {}
    ~Capture() { r_.output_ = before_; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    Value take();

   private:
    Renderer& r_;
    MarkedText text_;
    MarkedText* before_;
  };

  // Returns the text that was written outside of captures.
  MarkedText take_output() { return std::move(root_); }

 private:
  Budget budget_;
  const std::time_t now_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  MarkedText root_;
  MarkedText* output_ = &root_;
  std::deque<Namespace> namespaces_;
  std::deque<Loop> loops_;
  std::deque<Macro> macros_;
};

// Sets an entry of a dictionary that is being made.
void set_entry(Dict::Entries& entries, const Value& key, Value value);

// Returns the pairs of a dictionary, tuples.
std::vector<Value> items_of_dict(Renderer& r, const Dict& dict);

// a.name and a[key], as Jinja's sandbox reads them; what does not exist is undefined.
Value get_attribute(Renderer& r, const Value& value, std::string_view name);
Value get_item(Renderer& r, const Value& value, const Value& key);
// a[begin:end:step]; parts that are None have their defaults.
Value get_slice(Renderer& r, const Value& value, const Value& begin, const Value& end, const Value& step);

// Binary operators, by their symbols.
Value add(Renderer& r, const Value& a, const Value& b);
Value subtract(const Value& a, const Value& b);
Value multiply(Renderer& r, const Value& a, const Value& b);
Value divide(const Value& a, const Value& b);
Value floor_divide(const Value& a, const Value& b);
Value modulo(Renderer& r, const Value& a, const Value& b);
Value power(const Value& a, const Value& b);
Value negate(const Value& a);
bool contains(Renderer& r, const Value& list, const Value& item);
// "%s and %d" % values
Value format_text(Renderer& r, const MarkedText& format, const std::vector<Value>& values);

}  // namespace qkv::jinja
