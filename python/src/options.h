// Options from Python: a dict of keyword arguments, read through the description of a struct (qkv/field.h).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "qkv/field.h"

namespace qkv::python {

namespace nb = nanobind;

// Sets the fields that a dict holds. Throws Error, naming the option, for a value of a wrong type.
class OptionReader {
 public:
  explicit OptionReader(const nb::dict& values) : values_(values) {}

  void operator()(std::string_view name, bool& member, const Field& field = {});
  void operator()(std::string_view name, int64_t& member, const Field& field = {});
  void operator()(std::string_view name, uint64_t& member, const Field& field = {});
  void operator()(std::string_view name, double& member, const Field& field = {});
  void operator()(std::string_view name, std::string& member, const Field& field = {});
  void operator()(std::string_view name, std::vector<std::string>& member, const Field& field = {});
  void operator()(std::string_view name, std::vector<int64_t>& member, const Field& field = {});
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum& member, const Field& = {}) {
    constexpr auto kNames = names_of(Enum{});
    member = static_cast<Enum>(choose(name, {kNames.begin(), kNames.end()}, static_cast<size_t>(member)));
  }
  template <class Value>
  void operator()(std::string_view name, std::optional<Value>& member, const Field& = {}) {
    const nb::object value = take(name);
    if (!value.is_valid()) return;
    if (value.is_none()) {
      member.reset();
      return;
    }
    Value found{};
    (*this)(name, found);
    member = std::move(found);
  }

  // Call after the visit. Throws TypeError for a name that was not visited.
  void finish(const char* function) const;

 private:
  nb::object take(std::string_view name);  // not valid if the dict lacks it
  size_t choose(std::string_view name, const std::vector<std::string_view>& names, size_t otherwise);

  const nb::dict& values_;
  std::vector<std::string_view> visited_;
};

// Returns the options with the values of a dict; `function` is the name of the Python function in errors.
template <class Options>
Options options_of(const nb::dict& values, const char* function) {
  Options options;
  OptionReader reader(values);
  visit_fields(options, reader);
  reader.finish(function);
  return options;
}

// Adds option_fields() to the module: for each struct of options the list of its fields, as dicts.
void bind_options(nb::module_& m);

}  // namespace qkv::python
