// Options that are not given on the command line, but whose defaults depend on the run.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string_view>
#include <type_traits>

#include "options.h"
#include "qkv/field.h"

// Sets each field whose option the command has and was not given to its value in `defaults`.
template <class Options>
void take_defaults(const CLI::App& command, Options& options, Options defaults) {
  std::map<std::string_view, const void*> values;
  visit_fields(defaults, [&](std::string_view name, auto& member, const qkv::Field&) { values[name] = &member; });
  visit_fields(options, [&](std::string_view name, auto& member, const qkv::Field&) {
    const CLI::Option* option = command.get_option_no_throw(flag_of(name));
    if (option && option->count() == 0)
      member = *static_cast<const std::remove_reference_t<decltype(member)>*>(values.at(name));
  });
}
