// The completion script of bash.
#include <fmt/format.h>

#include "completions.h"

namespace {

// Returns "'a'|'b') BODY ;;" as a case of a script.
std::string branch(const std::vector<std::string>& patterns, const std::string& body) {
  std::vector<std::string> texts;
  for (const std::string& pattern : patterns) texts.push_back(shell_quoted(pattern));
  return fmt::format("    {}) {} ;;\n", fmt::join(texts, "|"), body);
}

std::string list(const std::vector<std::string>& words) {
  return shell_quoted(fmt::format("{}", fmt::join(words, " ")));
}

// Finds the command: the words before the cursor as long as they name commands.
std::string path_branch(const std::vector<CommandText>& commands) {
  std::vector<std::string> patterns;
  for (const CommandText& command : commands)
    for (const std::string& name : names_below(command)) patterns.push_back(command.path + ' ' + name);
  return branch(patterns, "command=\"${command:+$command }${COMP_WORDS[i]}\"");
}

// The words that may follow a command: the names of commands and of arguments, or options.
std::string words_branch(const CommandText& command) {
  std::vector<std::string> words = names_below(command), options;
  for (const OptionText& argument : command.arguments)
    words.insert(words.end(), argument.words.begin(), argument.words.end());
  for (const OptionText& option : command.options())
    options.insert(options.end(), option.names.begin(), option.names.end());
  return branch({command.path}, fmt::format("words={} options={}", list(words), list(options)));
}

// Completes the value of an option.
std::string value_body(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::words:
      return "options= words=" + list(option.words);
    case ValueKind::directory:
      return "_qkv_only dirnames; return";
    case ValueKind::file:
      return "_qkv_only default; return";
    default:
      return "_qkv_only; return";
  }
}

std::string value_branches(const CommandText& command) {
  std::string branches;
  for (const OptionText& option : command.options()) {
    if (option.kind == ValueKind::none || option.optional_value) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(command.path + ' ' + name);
    branches += branch(patterns, value_body(option));
  }
  return branches;
}

}  // namespace

std::string bash_completion(const std::vector<CommandText>& commands) {
  std::string words, values;
  for (const CommandText& command : commands) {
    words += words_branch(command);
    values += value_branches(command);
  }
  return "# Completion of qkv in bash, printed by `qkv completions bash`.\n\n"
         "# Uses only this completion of readline: default (files), dirnames or none.\n"
         "_qkv_only() {\n  compopt +o default ${1:+-o \"$1\"} 2> /dev/null\n}\n\n"
         "_qkv() {\n"
         "  local word=\"${COMP_WORDS[COMP_CWORD]}\" last=\"${COMP_WORDS[COMP_CWORD - 1]}\" command= words= options= "
         "i\n"
         "  COMPREPLY=()\n"
         "  if [ \"$word\" = '=' ]; then\n    word=\n"
         "  elif [ \"$last\" = '=' ]; then\n    last=\"${COMP_WORDS[COMP_CWORD - 2]}\"\n  fi\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$command ${COMP_WORDS[i]}\" in\n    " +
         path_branch(commands) +
         "      *) break ;;\n    esac\n  done\n"
         "  case \"$command\" in\n" +
         words + "  esac\n  case \"$command $last\" in\n" + values +
         "  esac\n"
         "  [[ \"$word\" == -* ]] && words=\"$options\"\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n\ncomplete -o default -F _qkv qkv\n";
}
