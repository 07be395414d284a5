// Options whose values are the names of an enum.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

// Accepts the names of an enum. The help of the option must list them; see choice_help.
template <class Enum>
CLI::Validator choices() {
  const auto number_of = [](std::string& value) -> std::string {
    const auto names = names_of(Enum{});
    const auto place = std::ranges::find(names, value);
    if (place == names.end()) return fmt::format("must be one of {} (is {})", fmt::join(names, ", "), value);
    value = std::to_string(place - names.begin());
    return "";
  };
  return {number_of, fmt::format("{{{}}}", fmt::join(names_of(Enum{}), ",")), "choices"};
}

// Returns "TEXT: relu, gelu, … [relu]", where the default is in brackets.
template <class Enum>
std::string choice_help(const char* text, Enum otherwise) {
  const auto names = names_of(Enum{});
  return fmt::format("{}: {} [{}]", text, fmt::join(names, ", "), names[static_cast<size_t>(otherwise)]);
}
