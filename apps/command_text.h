// The commands and options of the program as text. The help and the completions of shells are made of this description.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

// The name of the group of common options. Options that no group was set for are in it.
inline constexpr const char* kCommonOptions = "Options";

// The kind of a value, which a shell completes.
enum class ValueKind { none, words, file, directory, other };

// An option, or an argument that has its place instead of a name.
struct OptionText {
  std::vector<std::string> names;  // "-h", "--help"; of an argument "RUN"
  std::string value;               // name of the value: "FILE"; "" of a flag and of an argument
  std::string help;                // with the accepted values and the default
  std::vector<std::string> words;  // accepted values, if they are words
  ValueKind kind = ValueKind::none;
  bool required = false, repeated = false;
  bool optional_value = false;

  std::string label() const;    // "--out FILE", "RUN..."
  std::string summary() const;  // the help without what is in brackets
};

struct OptionGroup {
  std::string name;
  std::vector<OptionText> options;
};

struct CommandText {
  std::string name;                                                            // "qkv train translate"
  std::string path;                                                            // "train translate"; "" of the program
  std::string help, footer;                                                    // one line; some lines
  std::vector<OptionText> arguments;                                           // in order
  std::vector<OptionGroup> groups;                                             // the common options first
  std::vector<std::pair<std::string, std::vector<const CLI::App*>>> commands;  // below this one, by their groups

  std::vector<OptionText> options() const;  // of all groups
};

CommandText text_of(const CLI::App& command);

// Returns the text of a command and of all below it, parents first.
std::vector<CommandText> text_of_all(const CLI::App& command);
