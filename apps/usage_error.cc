#include "usage_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "qkv/text.h"

namespace {

std::string suggestion(std::string_view prefix, std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view nearest = qkv::nearest_name(name, names);
  return nearest.empty() ? "" : fmt::format("; did you mean \"{}{}\"?", prefix, nearest);
}

// The command that was parsed last: "translate" in `qkv train translate`.
const CLI::App& parsed_command(const CLI::App& app) {
  const std::vector<const CLI::App*> parsed = app.get_subcommands([](const CLI::App* c) { return c->parsed(); });
  return parsed.empty() ? app : parsed_command(*parsed.front());
}

std::string unknown_option(const CLI::App& command, const std::string& argument) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  const std::string name = argument.substr(0, argument.find('='));
  const std::string text = name.starts_with("--") ? suggestion("--", name.substr(2), names) : "";
  return fmt::format("unknown option \"{}\"{}", name, text);
}

std::string in_capitals(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

// The error of a missing argument that may be given by its place or by its name; "" for others.
std::string missing_argument(const CLI::App& command) {
  std::string places, names;
  const CLI::Option* missing = nullptr;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string place = in_capitals(option->get_name(true));
    places += " " + place;
    if (!option->get_required() || option->count() > 0) continue;
    if (option->get_lnames().empty()) return "";  // it comes first
    missing = option;
    for (const std::string& name : option->get_lnames()) names += fmt::format(", or --{} {}", name, place);
    break;
  }
  if (!missing) return "";
  return fmt::format("{} is required: qkv {}{}{}", in_capitals(missing->get_name(true)), command.get_name(), places,
                     names);
}

}  // namespace

std::string command_error(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const std::string& argument : arguments) {
    const std::vector<const CLI::App*> known = command->get_subcommands({});
    if (known.empty() || argument.starts_with("-")) return "";
    const auto found = std::ranges::find(known, argument, &CLI::App::get_name);
    if (found != known.end()) {
      command = *found;
      continue;
    }
    std::vector<std::string> names;
    for (const CLI::App* other : known) names.push_back(other->get_name());
    const std::string prefix = command->get_parent() ? command->get_name() + " " : "";
    return fmt::format("unknown command \"{}{}\"{}", prefix, argument, suggestion(prefix, argument, names));
  }
  if (command->get_subcommands({}).empty()) return "";
  return fmt::format("missing command (see qkv {}--help)", command->get_parent() ? command->get_name() + " " : "");
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = parsed_command(app);
  const std::vector<std::string> remaining = command.remaining();
  if (remaining.empty()) {
    const bool lacks_one = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
    const std::string text = lacks_one ? missing_argument(command) : "";
    return text.empty() ? error.what() : text;
  }
  const auto option = std::ranges::find_if(remaining, [](const std::string& text) { return text.starts_with("-"); });
  if (option != remaining.end()) return unknown_option(command, *option);
  return fmt::format("unexpected argument \"{}\"", remaining.front());
}
