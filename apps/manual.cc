// qkv manual: writes the manual pages.
#include "manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "commands.h"
#include "help.h"
#include "qkv/error.h"
#include "qkv/system.h"

namespace {

constexpr std::pair<const char*, const char*> kVariables[] = {
    {"OMP_NUM_THREADS",
     "Number of threads, if --threads is not given; default: one per processor that the process may use."},
    {"QKV_ISA",
     "Instruction set of the kernels: avx512, avx2, neon or portable; default: the best one of the machine."},
    {"QKV_TRANSPORT", "Transport plugin of training by several processes, as a path."},
    {"NO_COLOR", "If set and not empty, qkv train prints lines instead of a progress bar."},
    {"TERM", "The value dumb has the same effect as NO_COLOR."},
    {"HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE",
     "Cache, token and address of the Hugging Face hub, for qkv import hf:OWNER/NAME."}};

constexpr std::pair<const char*, const char*> kStatuses[] = {
    {"0", "Success."},
    {"1", "Failure: an error, in one line on standard error."},
    {"2", "Wrong usage: an unknown command or option, or an invalid value."},
    {"128 + N", "Ended by signal N, such as 130 after Ctrl-C."}};

// Returns the name of the page of a command, "qkv-train-translate".
std::string page_of(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

// The help of the program begins with its name.
std::string summary_of(const CommandText& command) {
  return command.help.starts_with("qkv: ") ? command.help.substr(5) : command.help;
}

// Returns a character of UTF-8 as \[uXXXX].
std::string character(std::string_view bytes) {
  uint32_t code = static_cast<unsigned char>(bytes[0]) & (0x7fu >> bytes.size());
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  return fmt::format("\\[u{:04X}]", code);
}

// Escapes text. Characters outside ASCII are written by number, so that pages do not depend on the encoding.
std::string roff(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if (length == 1)
      result += text[i];
    else
      result += character(text.substr(i, length));
    i += length;
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string section(const std::string& title) { return ".SH " + title + "\n"; }
std::string subsection(const std::string& title) { return ".SS " + roff(title) + "\n"; }
std::string tagged(const std::string& tag, std::string_view text) { return ".TP\n" + tag + "\n" + roff(text) + "\n"; }

std::string tag_of(const OptionText& option, bool argument) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(argument ? italic(name) : bold(name));
  std::string tag = fmt::format("{}", fmt::join(names, ", "));
  if (!option.value.empty()) tag += " " + italic(option.value);
  return option.repeated ? tag + "..." : tag;
}

std::string name_and_synopsis(const CommandText& command) {
  return section("NAME") + roff(page_of(command.name)) + " \\- " + roff(summary_of(command)) + "\n" +
         section("SYNOPSIS") + bold(command.name) + "\n" + roff(usage(command)) + "\n";
}

std::string commands_section(const CommandText& command) {
  if (command.commands.empty()) return "";
  std::string text = section("COMMANDS");
  for (const auto& [group, below] : command.commands) {
    if (command.commands.size() > 1) text += subsection(group);
    for (const CLI::App* app : below) text += tagged(bold(app->get_name()), app->get_description() + ".");
  }
  return text;
}

std::string options_section(const CommandText& command) {
  std::string text;
  if (!command.arguments.empty()) text += section("ARGUMENTS");
  for (const OptionText& argument : command.arguments) text += tagged(tag_of(argument, true), argument.help + ".");
  if (!command.groups.empty()) text += section("OPTIONS");
  for (const OptionGroup& group : command.groups) {
    if (group.name != kCommonOptions) text += subsection(group.name);
    for (const OptionText& option : group.options) text += tagged(tag_of(option, false), option.help + ".");
  }
  return text;
}

// The footer as lines of their own.
std::string notes_section(const CommandText& command) {
  if (command.footer.empty()) return "";
  std::string text = section("NOTES") + ".nf\n";
  std::istringstream lines(command.footer);
  for (std::string line; std::getline(lines, line);) text += roff(line) + "\n";
  return text + ".fi\n";
}

template <size_t N>
std::string list_section(const std::string& title, const std::pair<const char*, const char*> (&entries)[N]) {
  std::string text = section(title);
  for (const auto& [name, meaning] : entries) text += tagged(bold(name), meaning);
  return text;
}

// Names the pages of the command above and of those below.
std::string see_also_section(const CommandText& command) {
  std::vector<std::string> pages;
  if (!command.path.empty()) pages.push_back(page_of(command.name.substr(0, command.name.rfind(' '))));
  for (const auto& [group, below] : command.commands)
    for (const CLI::App* app : below) pages.push_back(page_of(command.name + ' ' + app->get_name()));
  for (std::string& page : pages) page = bold(page) + "(1)";
  return section("SEE ALSO") + fmt::format("{}\n", fmt::join(pages, ",\n"));
}

void write_pages(const CLI::App& app, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw qkv::Error(fmt::format("{}: cannot be made a folder: {}", folder, error.message()));
  for (const CommandText& command : text_of_all(app))
    write_text_file(fmt::format("{}/{}.1", folder, page_of(command.name)), manual_page(command));
}

}  // namespace

std::string manual_page(const CommandText& command) {
  std::string title = page_of(command.name);
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string version = qkv::version();
  version.resize(version.find(" ("));
  return fmt::format(".TH {} 1 {} \"{}\" \"User Commands\"\n", title, QKV_DATE, version) + name_and_synopsis(command) +
         commands_section(command) + options_section(command) + notes_section(command) +
         list_section("EXIT STATUS", kStatuses) + list_section("ENVIRONMENT", kVariables) + see_also_section(command);
}

void add_manual_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("manual", "Write the manual pages of all commands, qkv.1 and others");
  const auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "Folder to write them to")->required();
  command->footer("man -l FOLDER/qkv.1 shows a page. An installed qkv has its pages already: man qkv.");
  command->callback([&app, folder] { write_pages(app, *folder); });
}
