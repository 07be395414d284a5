// The completion script of fish.
#include <fmt/format.h>

#include "completions.h"

namespace {

// fish reads \ and ' in single quotes in a way of its own.
std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_action(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::words:
      return " -x -a " + fish_quoted(fmt::format("{}", fmt::join(option.words, " ")));
    case ValueKind::directory:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::file:
      return " -r -F";
    default:
      return " -x";
  }
}

// Begins a line that holds after a command.
std::string fish_begin(const CommandText& command) {
  return fmt::format("complete -c qkv -n {}", fish_quoted("__qkv_after '" + command.path + "'"));
}

std::string fish_line(const CommandText& command, const OptionText& option) {
  std::string line = fish_begin(command);
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.kind != ValueKind::none && !option.optional_value) line += fish_action(option);
  return line + " -d " + fish_quoted(option.summary()) + "\n";
}

std::string fish_lines(const CommandText& command) {
  std::string lines;
  for (const auto& [group, below] : command.commands)
    for (const CLI::App* app : below)
      lines +=
          fish_begin(command) + fmt::format(" -f -a {} -d {}\n", app->get_name(), fish_quoted(app->get_description()));
  for (const OptionText& argument : command.arguments)
    if (!argument.words.empty()) lines += fish_begin(command) + fish_action(argument) + "\n";
  for (const OptionText& option : command.options()) lines += fish_line(command, option);
  return lines;
}

}  // namespace

std::string fish_completion(const std::vector<CommandText>& commands) {
  std::string paths, lines;
  for (const CommandText& command : commands) {
    if (!command.path.empty()) paths += " " + fish_quoted(command.path);
    lines += fish_lines(command);
  }
  return "# Completion of qkv in fish, printed by `qkv completions fish`.\n\n"
         "# Succeeds if the command that has been typed is the argument.\n"
         "function __qkv_after\n"
         "    set -l command\n"
         "    for word in (commandline -opc)[2..]\n"
         "        set -l longer (string trim -- \"$command $word\")\n"
         "        contains -- $longer" +
         paths +
         "\n"
         "        or break\n"
         "        set command $longer\n"
         "    end\n"
         "    test \"$command\" = \"$argv\"\n"
         "end\n\n" +
         lines;
}
