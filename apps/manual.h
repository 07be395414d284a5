// Manual pages, in the language of man(7).
#pragma once

#include <string>

#include "command_text.h"

// Returns the page of a command.
std::string manual_page(const CommandText& command);
