// Scripts that let shells complete the commands and options of the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command_text.h"

// Each returns a script for all commands, parents first.
std::string bash_completion(const std::vector<CommandText>& commands);
std::string zsh_completion(const std::vector<CommandText>& commands);
std::string fish_completion(const std::vector<CommandText>& commands);

// Returns the names of the commands directly below `command`.
std::vector<std::string> names_below(const CommandText& command);

// Returns the text in single quotes, for any of these shells.
std::string shell_quoted(std::string_view text);
// Returns "qkv_train_translate".
std::string function_name(const CommandText& command);
