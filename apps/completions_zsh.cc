// The completion script of zsh, for its function _arguments.
#include <fmt/format.h>

#include "completions.h"

namespace {

// Escapes what has a meaning in a specification of _arguments.
std::string zsh_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '[' || c == ']' || c == ':') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::words:
      return fmt::format("({})", fmt::join(option.words, " "));
    case ValueKind::directory:
      return "_files -/";
    case ValueKind::file:
      return "_files";
    default:
      return " ";
  }
}

// Returns a specification for each name of an option, such as '*--beam=[Hypotheses kept per step]:INT: '.
std::string specifications(const OptionText& option) {
  std::string lines;
  for (const std::string& name : option.names) {
    const bool has_value = option.kind != ValueKind::none && !option.optional_value;
    std::string text =
        fmt::format("*{}{}[{}]", name, has_value && name.starts_with("--") ? "=" : "", zsh_escaped(option.summary()));
    if (has_value) text += fmt::format(":{}:{}", zsh_escaped(option.value), zsh_action(option));
    lines += "    " + shell_quoted(text) + " \\\n";
  }
  return lines;
}

// Returns the specifications of arguments. An argument that may be repeated is the last.
std::string arguments(const CommandText& command) {
  std::string lines;
  for (const OptionText& argument : command.arguments)
    lines += "    " +
             shell_quoted(
                 fmt::format("{}:{}:{}", argument.repeated ? "*" : "", argument.names.front(), zsh_action(argument))) +
             " \\\n";
  return lines;
}

std::string subcommands(const CommandText& command) {
  std::string names, cases;
  for (const auto& [group, below] : command.commands)
    for (const CLI::App* app : below) {
      names += "      " + shell_quoted(zsh_escaped(app->get_name()) + ":" + app->get_description()) + "\n";
      cases += fmt::format("        {}) _{} ;;\n", app->get_name(), function_name(text_of(*app)));
    }
  return "    '1: :->command' '*:: :->rest'\n"
         "  case \"$state\" in\n"
         "    command)\n      commands=(\n" +
         names + "      )\n      _describe -t commands command commands ;;\n    rest)\n      case \"$line[1]\" in\n" +
         cases + "      esac ;;\n  esac\n";
}

std::string function_of(const CommandText& command) {
  std::string text = "_" + function_name(command) + "() {\n";
  const bool has_commands = !command.commands.empty();
  if (has_commands)
    text +=
        "  local curcontext=\"$curcontext\" context state state_descr line\n  local -a commands\n  typeset -A "
        "opt_args\n";
  text += has_commands ? "  _arguments -C \\\n" : "  _arguments \\\n";
  for (const OptionText& option : command.options()) text += specifications(option);
  text += has_commands ? subcommands(command) : arguments(command) + "    && return\n";
  return text + "}\n\n";
}

}  // namespace

std::string zsh_completion(const std::vector<CommandText>& commands) {
  std::string text = "#compdef qkv\n# Completion of qkv in zsh, printed by `qkv completions zsh`.\n\n";
  for (const CommandText& command : commands) text += function_of(command);
  return text + "if [ \"$funcstack[1]\" = _qkv ]; then\n  _qkv \"$@\"\nelse\n  compdef _qkv qkv\nfi\n";
}
