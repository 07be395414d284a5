#include "help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

namespace {

constexpr size_t kColumn = 30, kWidth = 110;  // where descriptions start, and where lines end
constexpr size_t kExamples = 3;               // options that stand for their group in the short help

// `name` and, from kColumn on, the words of `text`, in lines of at most kWidth columns.
std::string entry(const std::string& name, const std::string& text) {
  std::string lines, line = "  " + name;
  if (line.size() + 2 > kColumn) lines = line + "\n", line.clear();
  line.resize(kColumn, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() > kColumn && line.size() + 1 + word.size() > kWidth) {
      lines += line + "\n";
      line.assign(kColumn, ' ');
    }
    line += (line.size() > kColumn ? " " : "") + word;
  }
  return lines + line + "\n";
}

std::string heading(const std::string& text) { return "\n" + text + ":\n"; }

std::string positionals(const CommandText& command) {
  std::string text;
  for (const OptionText& argument : command.arguments) text += entry(argument.label(), argument.help);
  return text.empty() ? text : heading("Arguments") + text;
}

std::string commands(const CommandText& command) {
  std::string text;
  for (const auto& [group, below] : command.commands) {
    text += heading(group);
    for (const CLI::App* app : below) text += entry(app->get_name(), app->get_description());
  }
  return text;
}

std::string options(const OptionGroup& group) {
  std::string text = heading(group.name);
  for (const OptionText& option : group.options) text += entry(option.label(), option.help);
  return text;
}

// One line for a group that --help-all shows.
std::string summary(const OptionGroup& group) {
  const size_t all = group.options.size();
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kExamples, all); i++)
    names.push_back(fmt::format("{}", fmt::join(group.options[i].names, ",")));
  const std::string more = all > kExamples ? fmt::format(" and {} more", all - kExamples) : "";
  return entry(group.name, fmt::format("{}{}", fmt::join(names, ", "), more));
}

std::string all_options(const CommandText& command, bool every_group) {
  std::string text, summaries;
  for (const OptionGroup& group : command.groups)
    if (every_group || group.name == kCommonOptions)
      text += options(group);
    else
      summaries += summary(group);
  return summaries.empty() ? text : text + heading("More options, which --help-all describes") + summaries;
}

}  // namespace

std::string usage(const CommandText& command) {
  if (!command.commands.empty()) return "COMMAND";
  std::string text;
  for (const OptionText& argument : command.arguments)
    text += (argument.required ? argument.label() : "[" + argument.label() + "]") + " ";
  return text + "[OPTIONS]";
}

void describe(CLI::Option& option, const OptionHelp& help) {
  std::string values = help.accepted;
  if (!help.value.empty()) values += fmt::format("{}default {}", values.empty() ? "" : "; ", help.value);
  option.description(values.empty() ? help.text : fmt::format("{} [{}]", help.text, values));
  std::string group = help.group;
  if (!group.empty()) group[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(group[0])));
  option.group(help.common || group.empty() ? kCommonOptions : group);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  const CommandText command = text_of(*app);
  std::string text = fmt::format("{}\n\nUsage: {} {}\n", command.help, name, usage(command));
  text += positionals(command) + commands(command) + all_options(command, mode == CLI::AppFormatMode::All);
  return command.footer.empty() ? text : text + "\n" + command.footer + "\n";
}

void add_help_all(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    const std::vector<OptionGroup> groups = text_of(*command).groups;
    if (std::ranges::any_of(groups, [](const OptionGroup& group) { return group.name != kCommonOptions; }))
      command->set_help_all_flag("--help-all", "Show all options and exit");
    add_help_all(*command);
  }
}
