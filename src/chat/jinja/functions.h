// Functions, filters, tests and methods of the template language, by name.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/value.h"

namespace qkv::jinja {

class Renderer;

struct Arguments {
  std::vector<Value> positional = {};
  std::vector<std::pair<std::string, Value>> named = {};
};

// self: the value of a filter, a test or a method; None of a global function.
struct Function {
  std::string_view name;
  Value (*call)(Renderer&, const Value& self, const Arguments&);
};

// Return null for an unknown name.
const Function* find_filter(std::string_view name);
const Function* find_test(std::string_view name);
const Function* find_global(std::string_view name);
const Function* find_text_method(std::string_view name);
const Function* find_sequence_method(std::string_view name);
const Function* find_dict_method(std::string_view name);

template <size_t N>
const Function* find_in(const Function (&table)[N], std::string_view name) {
  for (const Function& function : table)
    if (function.name == name) return &function;
  return nullptr;
}

// The arguments of a call by parameter.
class Parameters {
 public:
  // Throws Error for too many arguments, and for a name that the function does not have.
  Parameters(const Arguments& arguments, std::string_view function, std::initializer_list<std::string_view> names);

  // Returns null if the argument is not given.
  const Value* find(size_t i) const { return values_.at(i); }
  // Throws Error if it is not given.
  const Value& get(size_t i) const;

  // Return an argument of this type, or `otherwise` if it is not given or None. Throw Error for another type.
  std::string text(size_t i, std::string_view otherwise = "") const;
  const MarkedText& marked(size_t i) const;
  int64_t integer(size_t i, int64_t otherwise) const;
  bool flag(size_t i, bool otherwise = false) const;

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace qkv::jinja
