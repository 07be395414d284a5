// Command-line options from the description of a struct of options (qkv/field.h).
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "choices.h"
#include "qkv/field.h"

// Lets the options of sampling require --sampling.
void require_sampling(CLI::App& command);

// Accepts numbers in the range. Texts that are not numbers are left to the conversion, which refuses them.
CLI::Validator in_range(const qkv::Range& range);

// Returns "--no-repeat-ngram" for "no_repeat_ngram". Languages have short flags, "--from" and "--to".
std::string flag_of(std::string_view name);

// A visitor of fields that adds one option to a command for each field. An option outside its range is an error of
// usage. The struct must outlive the command.
class OptionAdder {
 public:
  // left_out: fields that the command offers in another way, or not at all.
  explicit OptionAdder(CLI::App& command, std::vector<std::string_view> left_out = {})
      : command_(command), left_out_(std::move(left_out)) {}

  // A flag, or an option that takes true or false where the default is true.
  void operator()(std::string_view name, bool& member, const qkv::Field& field);
  void operator()(std::string_view name, int64_t& member, const qkv::Field& field);
  void operator()(std::string_view name, uint64_t& member, const qkv::Field& field);
  void operator()(std::string_view name, double& member, const qkv::Field& field);
  void operator()(std::string_view name, std::string& member, const qkv::Field& field);
  void operator()(std::string_view name, std::vector<std::string>& member, const qkv::Field& field);
  void operator()(std::string_view name, std::optional<bool>& member, const qkv::Field& field);
  void operator()(std::string_view name, std::optional<int64_t>& member, const qkv::Field& field);
  void operator()(std::string_view name, std::optional<std::string>& member, const qkv::Field& field);
  void operator()(std::string_view name, std::optional<std::vector<std::string>>& member, const qkv::Field& field);
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum& member, const qkv::Field& field) {
    if (offers(name, field)) add_choice<Enum>(name, member, field, names_of(Enum{})[static_cast<size_t>(member)]);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view name, std::optional<Enum>& member, const qkv::Field& field) {
    if (offers(name, field)) add_choice<Enum>(name, member, field, "");
  }

 private:
  bool offers(std::string_view name, const qkv::Field& field) const;
  // Describes an option by its field and the values that it accepts.
  void add(CLI::Option* option, const qkv::Field& field, const std::string& accepted = "") const;
  template <class Number>
  void add_number(std::string_view name, Number& member, const qkv::Field& field);
  template <class Enum, class Member>
  void add_choice(std::string_view name, Member& member, const qkv::Field& field, std::string_view otherwise) {
    CLI::Option* option = command_.add_option(flag_of(name), member)->transform(choices<Enum>())->type_name("TEXT");
    add(option->default_str(std::string(otherwise)), field, fmt::format("{}", fmt::join(names_of(Enum{}), ", ")));
  }

  CLI::App& command_;
  const std::vector<std::string_view> left_out_;
};

// Adds an option for each field of `options`, but for those that are left out.
template <class Options>
void add_options(CLI::App& command, Options& options, std::vector<std::string_view> left_out = {}) {
  OptionAdder adder(command, std::move(left_out));
  visit_fields(options, adder);
}
