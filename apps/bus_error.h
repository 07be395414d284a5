// Files that become shorter while they are mapped: reading past their end raises SIGBUS.
#pragma once

// Lets such a signal end the program with status 1 and a line that names the file.
void report_bus_errors();
