#include "command_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

namespace {

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// Returns the words of a type such as "TEXT:{bleu,chrf}", as CLI11 writes those of CLI::IsMember.
std::vector<std::string> words_of(const std::string& type) {
  const size_t begin = type.find(":{"), end = type.find('}', begin);
  std::vector<std::string> words;
  if (end == type.npos) return words;
  std::istringstream list(type.substr(begin + 2, end - begin - 2));
  for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  return words;
}

ValueKind kind_of(const std::string& value, const std::vector<std::string>& words) {
  if (!words.empty()) return ValueKind::words;
  if (value == "RUN" || value == "FOLDER") return ValueKind::directory;
  if (value.starts_with("FILE") || value == "TEXT") return ValueKind::file;
  return ValueKind::other;
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

// positional: describes the argument of an option that also has names.
OptionText describe_option(const CLI::Option& option, bool positional) {
  const std::string type = option.get_type_name();
  OptionText text;
  text.help = description(option, positional);
  text.words = words_of(type);
  text.required = option.get_required();
  text.repeated = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  if (positional) {
    text.names = {upper_case(option.get_name(true, false))};
    text.kind = text.words.empty() ? ValueKind::file : ValueKind::words;
    return text;
  }
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  text.optional_value = option.get_expected_min() == 0;
  if (option.get_expected_max() > 0) text.value = type.substr(0, type.find(':'));
  if (!text.value.empty()) text.kind = kind_of(text.value, text.words);
  return text;
}

// Returns the options of a group; --help and --help-all come last.
std::vector<OptionText> options_of(const CLI::App& app, const std::string& group) {
  std::vector<const CLI::Option*> options =
      app.get_options([&](const CLI::Option* o) { return o->nonpositional() && o->get_group() == group; });
  std::ranges::stable_partition(
      options, [&](const CLI::Option* o) { return o != app.get_help_ptr() && o != app.get_help_all_ptr(); });
  std::vector<OptionText> texts;
  for (const CLI::Option* option : options) texts.push_back(describe_option(*option, false));
  return texts;
}

// Returns the groups of options, the common ones first. Options without a name for their group are hidden.
std::vector<OptionGroup> groups_of(const CLI::App& app) {
  std::vector<OptionGroup> groups = {{kCommonOptions, options_of(app, kCommonOptions)}};
  for (const std::string& name : app.get_groups())
    if (!name.empty() && name != kCommonOptions) groups.push_back({name, options_of(app, name)});
  std::erase_if(groups, [](const OptionGroup& group) { return group.options.empty(); });
  return groups;
}

void add_all(const CLI::App& command, std::vector<CommandText>& texts) {
  texts.push_back(text_of(command));
  for (const CLI::App* below : command.get_subcommands({})) add_all(*below, texts);
}

}  // namespace

std::string OptionText::label() const {
  std::string label = fmt::format("{}", fmt::join(names, ","));
  if (!value.empty()) label += " " + value;
  return repeated ? label + "..." : label;
}

std::string OptionText::summary() const {
  const std::string text = help.substr(0, help.find(" ["));
  return text.ends_with(" (required)") ? text.substr(0, text.size() - 11) : text;
}

std::vector<OptionText> CommandText::options() const {
  std::vector<OptionText> all;
  for (const OptionGroup& group : groups) all.insert(all.end(), group.options.begin(), group.options.end());
  return all;
}

CommandText text_of(const CLI::App& command) {
  CommandText text;
  for (const CLI::App* app = &command; app; app = app->get_parent()) {
    text.name = app->get_name() + (text.name.empty() ? "" : " ") + text.name;
    if (app->get_parent()) text.path = app->get_name() + (text.path.empty() ? "" : " ") + text.path;
  }
  text.help = command.get_description();
  text.footer = command.get_footer();
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->get_positional(); }))
    text.arguments.push_back(describe_option(*option, true));
  text.groups = groups_of(command);
  for (const CLI::App* below : command.get_subcommands({})) {
    const auto is_it = [&](const auto& group) { return group.first == below->get_group(); };
    auto group = std::ranges::find_if(text.commands, is_it);
    if (group == text.commands.end()) group = text.commands.insert(group, {below->get_group(), {}});
    group->second.push_back(below);
  }
  return text;
}

std::vector<CommandText> text_of_all(const CLI::App& command) {
  std::vector<CommandText> texts;
  add_all(command, texts);
  return texts;
}
