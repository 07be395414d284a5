// Progress on a terminal.
#pragma once

#include <cstddef>
#include <string>

// Whether standard error is a terminal on which a line can be rewritten. NO_COLOR (set and not empty) and TERM=dumb ask
// for plain lines instead.
bool rewrites_lines();

// Returns the columns of the terminal; 80 if unknown.
size_t terminal_width();

// Returns "[#####---------------]  25%" for 0.25.
std::string progress_bar(double fraction);
