// qkv completions: prints the completion script of a shell.
#include "completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "commands.h"

namespace {

using Generator = std::string (*)(const std::vector<CommandText>&);
constexpr std::pair<const char*, Generator> kShells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

void print_completion(const CLI::App& app, const std::string& shell) {
  const auto is_it = [&](const auto& entry) { return entry.first == shell; };
  print_out(std::ranges::find_if(kShells, is_it)->second(text_of_all(app)));
}

}  // namespace

std::vector<std::string> names_below(const CommandText& command) {
  std::vector<std::string> names;
  for (const auto& [group, below] : command.commands)
    for (const CLI::App* app : below) names.push_back(app->get_name());
  return names;
}

std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text)
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  return result + "'";
}

std::string function_name(const CommandText& command) {
  std::string name = command.name;
  std::ranges::replace_if(
      name, [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

void add_completions_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completions", "Print the completion script of a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "An installed qkv has its scripts already. For another one:\n"
      "  bash: source <(qkv completions bash)\n"
      "  zsh:  source <(qkv completions zsh)\n"
      "  fish: qkv completions fish | source");
  command->callback([&app, shell] { print_completion(app, *shell); });
}
