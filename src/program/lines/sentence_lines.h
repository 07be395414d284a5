// The work of `qkv data sentences` and `qkv data abbreviations`.
#pragma once

#include <string>
#include <vector>

#include "qkv/jobs.h"

namespace qkv {

// Writes the sentences of each line of the files ("-" is standard input), a line each, and an empty line after those of
// each line, as lines arrive. In addition to the built-in abbreviations it uses those of `run`, the directory of a
// translator, and those of the file `abbreviations`; "": none. Throws Error, naming the file, if one cannot be read,
// and for a run of another kind.
void split_lines(const std::vector<std::string>& files, const std::string& run, const std::string& abbreviations,
                 const LineOutput& output);

// Writes the abbreviations that are found in the lines of all files, one per line. Throws as above.
void learn_abbreviations(const std::vector<std::string>& files, const LineOutput& output);

}  // namespace qkv
