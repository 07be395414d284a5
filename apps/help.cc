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

// The names of an option and the kind of its value, "--out FILE", or of an argument, "RUN".
std::string label(const CLI::Option& option, bool positional) {
  std::string label = positional ? option.get_name(true, false) : option.get_name(false, true);
  if (positional)
    std::ranges::transform(label, label.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const std::string type = option.get_type_name();
  if (!positional && option.get_expected_max() > 0 && !type.empty()) label += " " + type.substr(0, type.find(':'));
  if (option.get_expected_max() == CLI::detail::expected_max_vector_size) label += "...";
  return label;
}

std::string description(const CLI::Option& option, bool positional) {
  std::string text = option.get_description();
  // The default of an option whose value may be left out is that of the value, not of the option.
  const bool optional_value = option.get_items_expected_min() == 0 && option.get_items_expected_max() > 0;
  if (!optional_value && !option.get_default_str().empty())
    text += fmt::format(" [default {}]", option.get_default_str());
  if (option.get_required() && !positional) text += " (required)";
  return text;
}

std::string heading(const std::string& text) { return "\n" + text + ":\n"; }

// The options of a group; --help and --help-all come last.
std::vector<const CLI::Option*> options_of(const CLI::App& app, const std::string& group) {
  std::vector<const CLI::Option*> options =
      app.get_options([&](const CLI::Option* o) { return o->nonpositional() && o->get_group() == group; });
  std::ranges::stable_partition(
      options, [&](const CLI::Option* o) { return o != app.get_help_ptr() && o != app.get_help_all_ptr(); });
  return options;
}

// The groups of options other than the common ones; options without a name for their group are hidden.
std::vector<std::string> advanced_groups(const CLI::App& app) {
  std::vector<std::string> groups = app.get_groups();
  std::erase_if(groups, [](const std::string& group) { return group.empty() || group == kCommonOptions; });
  return groups;
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string text = fmt::format("\nUsage: {}", name);
  if (!app.get_subcommands({}).empty()) return text + " COMMAND\n";
  for (const CLI::Option* o : app.get_options([](const CLI::Option* option) { return option->get_positional(); })) {
    const std::string label = ::label(*o, true);
    text += o->get_required() ? " " + label : " [" + label + "]";
  }
  return text + " [OPTIONS]\n";
}

std::string positionals(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* o : app.get_options([](const CLI::Option* option) { return option->get_positional(); }))
    text += entry(label(*o, true), description(*o, true));
  return text.empty() ? text : heading("Arguments") + text;
}

std::string commands(const CLI::App& app) {
  std::string text;
  std::vector<std::string> groups;
  for (const CLI::App* command : app.get_subcommands({}))
    if (std::ranges::find(groups, command->get_group()) == groups.end()) groups.push_back(command->get_group());
  for (const std::string& group : groups) {
    text += heading(group);
    for (const CLI::App* command : app.get_subcommands({}))
      if (command->get_group() == group) text += entry(command->get_name(), command->get_description());
  }
  return text;
}

std::string options(const CLI::App& app, const std::string& group) {
  std::string text;
  for (const CLI::Option* o : options_of(app, group)) text += entry(label(*o, false), description(*o, false));
  return text.empty() ? text : heading(group) + text;
}

// One line for each group that --help-all shows.
std::string summary(const CLI::App& app) {
  std::string text;
  for (const std::string& group : advanced_groups(app)) {
    const std::vector<const CLI::Option*> all = options_of(app, group);
    if (all.empty()) continue;
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(kExamples, all.size()); i++) names.push_back(all[i]->get_name(false, true));
    text +=
        entry(group, fmt::format("{}{}", fmt::join(names, ", "),
                                 all.size() > kExamples ? fmt::format(" and {} more", all.size() - kExamples) : ""));
  }
  return text.empty() ? text : heading("More options, which --help-all describes") + text;
}

}  // namespace

void describe(CLI::Option& option, const OptionHelp& help) {
  std::string values = help.accepted;
  if (!help.value.empty()) values += fmt::format("{}default {}", values.empty() ? "" : "; ", help.value);
  option.description(values.empty() ? help.text : fmt::format("{} [{}]", help.text, values));
  std::string group = help.group;
  if (!group.empty()) group[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(group[0])));
  option.group(help.common || group.empty() ? kCommonOptions : group);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = app->get_description() + "\n" + usage(*app, name) + positionals(*app) + commands(*app) +
                     options(*app, kCommonOptions);
  if (mode == CLI::AppFormatMode::All)
    for (const std::string& group : advanced_groups(*app)) text += options(*app, group);
  else
    text += summary(*app);
  if (!app->get_footer().empty()) text += "\n" + app->get_footer() + "\n";
  return text;
}

void add_help_all(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    if (!advanced_groups(*command).empty()) command->set_help_all_flag("--help-all", "Show all options and exit");
    add_help_all(*command);
  }
}
