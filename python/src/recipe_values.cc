#include "recipe_values.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "options.h"

namespace qkv::python {
namespace {

using Type = RecipeOption::Type;

// The type of an option in Python.
std::string python_type(const RecipeOption& option) {
  switch (option.type) {
    case Type::boolean:
      return "bool";
    case Type::integer:
      return "int";
    case Type::number:
      return "float";
    case Type::text:
      return "str";
    case Type::list:
      return "Iterable[str]";
    case Type::integers:
      return "Iterable[int]";
    case Type::choice:
      break;
  }
  std::string names = option.accepted;
  for (size_t comma = 0; (comma = names.find(", ", comma)) != std::string::npos; comma += 4)
    names.replace(comma, 2, "\", \"");
  return fmt::format("Literal[\"{}\"]", names);
}

std::string python_default(const RecipeOption& option) {
  switch (option.type) {
    case Type::boolean:
      return option.value == "true" ? "True" : "False";
    case Type::text:
      return fmt::format("\"{}\"", option.value);
    case Type::choice:
      return fmt::format("'{}'", option.value);
    case Type::list:
    case Type::integers:
      return option.value.empty() ? "()" : fmt::format("\"{}\"", option.value);
    default:
      return option.value;
  }
}

template <class Value>
Value read(OptionReader& reader, const RecipeOption& option) {
  Value value{};
  reader(option.name, value);
  return value;
}

std::string value_text(OptionReader& reader, const RecipeOption& option) {
  switch (option.type) {
    case Type::boolean:
      return read<bool>(reader, option) ? "true" : "false";
    case Type::integer:
      return fmt::format("{}", read<int64_t>(reader, option));
    case Type::number:
      return fmt::format("{}", read<double>(reader, option));
    case Type::list:
      return fmt::format("{}", fmt::join(read<std::vector<std::string>>(reader, option), ","));
    case Type::integers:
      return fmt::format("{}", fmt::join(read<std::vector<int64_t>>(reader, option), ","));
    default:
      return read<std::string>(reader, option);
  }
}

}  // namespace

nb::list recipe_fields(const std::vector<RecipeOption>& options) {
  nb::list fields;
  for (const RecipeOption& option : options) {
    nb::dict entry;
    entry["name"] = option.name;
    entry["type"] = python_type(option);
    entry["default"] = python_default(option);
    entry["help"] = option.help;
    fields.append(entry);
  }
  return fields;
}

RecipeValues recipe_values(const std::vector<RecipeOption>& options, const nb::dict& values, const char* function) {
  OptionReader reader(values);
  RecipeValues found;
  for (const RecipeOption& option : options) {
    std::string text = value_text(reader, option);
    if (values.contains(option.name.c_str())) found.emplace_back(option.name, std::move(text));
  }
  reader.finish(function);
  return found;
}

}  // namespace qkv::python
